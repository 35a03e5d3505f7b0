#include "data/jpeg/jpeg.h"

#include <algorithm>

#include <turbojpeg.h>

#include "base/error.h"

namespace convoy {

namespace {

const unsigned char* data_of(std::string_view bytes) { return reinterpret_cast<const unsigned char*>(bytes.data()); }

// What the library only warns of. Bytes too many between two markers do no harm; everything else has cost parts of the picture.
bool harmless(std::string_view warning) { return warning.find("extraneous bytes") != std::string_view::npos; }

// Of CMYK as Adobe's programs write it, inverted.
void from_cmyk(const std::vector<uint8_t>& cmyk, Pixels& pixels) {
    const auto count = static_cast<size_t>(pixels.size.width * pixels.size.height);
    for (size_t i = 0; i < count; ++i)
        for (size_t c = 0; c < 3; ++c) pixels.rgb[3 * i + c] = static_cast<uint8_t>(cmyk[4 * i + c] * cmyk[4 * i + 3] / 255);
}

}  // namespace

struct JpegDecoder::Impl {
    Impl() : handle(tjInitDecompress()) { require(handle != nullptr, "cannot start libjpeg-turbo: {}", tjGetErrorStr2(nullptr)); }
    ~Impl() { tjDestroy(handle); }
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    tjhandle handle;
    std::vector<uint8_t> cmyk;
};

JpegDecoder::JpegDecoder() : impl_(std::make_unique<Impl>()) {}
JpegDecoder::~JpegDecoder() = default;
JpegDecoder::JpegDecoder(JpegDecoder&&) noexcept = default;
JpegDecoder& JpegDecoder::operator=(JpegDecoder&&) noexcept = default;

namespace {

struct Header {
    int width = 0, height = 0, subsampling = 0, colors = 0;
};

Header header_of(tjhandle handle, std::string_view bytes, const std::string& name) {
    Header header;
    const int result =
        tjDecompressHeader3(handle, data_of(bytes), bytes.size(), &header.width, &header.height, &header.subsampling, &header.colors);
    require(result == 0 || tjGetErrorCode(handle) == TJERR_WARNING, "{}: corrupt JPEG header: {}", name, tjGetErrorStr2(handle));
    require(int64_t{header.width} * header.height <= kMostPixels, "{}: expected a picture of at most {} pixels, found {}x{}", name,
            kMostPixels, header.width, header.height);
    return header;
}

}  // namespace

bool is_jpeg(std::string_view bytes) { return bytes.substr(0, 3) == "\xff\xd8\xff"; }

ImageSize JpegDecoder::size(std::string_view bytes, const std::string& name) {
    const Header header = header_of(impl_->handle, bytes, name);
    return {header.width, header.height};
}

void JpegDecoder::decode(std::string_view bytes, int eighths, Pixels& pixels, const std::string& name) {
    CONVOY_CHECK(eighths >= 1 && eighths <= 8, "a picture at {} eighths of its size", eighths);
    const Header header = header_of(impl_->handle, bytes, name);
    const tjscalingfactor factor{eighths, 8};
    pixels.resize({TJSCALED(header.width, factor), TJSCALED(header.height, factor)});
    const bool cmyk = header.colors == TJCS_CMYK || header.colors == TJCS_YCCK;
    if (cmyk) impl_->cmyk.resize(static_cast<size_t>(pixels.size.width * pixels.size.height * 4));
    const int result =
        tjDecompress2(impl_->handle, data_of(bytes), bytes.size(), cmyk ? impl_->cmyk.data() : pixels.rgb.data(),
                      static_cast<int>(pixels.size.width), 0, static_cast<int>(pixels.size.height), cmyk ? TJPF_CMYK : TJPF_RGB, 0);
    if (result != 0) {
        const std::string text = tjGetErrorStr2(impl_->handle);
        require(tjGetErrorCode(impl_->handle) == TJERR_WARNING && harmless(text), "{}: corrupt JPEG: {}", name, text);
    }
    if (cmyk) from_cmyk(impl_->cmyk, pixels);
}

std::string encode_jpeg(const Pixels& pixels, int quality) {
    CONVOY_CHECK(pixels.size.width >= 1 && pixels.size.height >= 1 && quality >= 1 && quality <= 100, "a JPEG of {}x{} at quality {}",
                 pixels.size.width, pixels.size.height, quality);
    const std::unique_ptr<void, int (*)(tjhandle)> handle(tjInitCompress(), tjDestroy);
    require(handle != nullptr, "cannot start libjpeg-turbo: {}", tjGetErrorStr2(nullptr));
    unsigned char* packed = nullptr;
    unsigned long size = 0;
    const int result = tjCompress2(handle.get(), pixels.rgb.data(), static_cast<int>(pixels.size.width), 0,
                                   static_cast<int>(pixels.size.height), TJPF_RGB, &packed, &size, TJSAMP_420, quality, 0);
    const std::unique_ptr<unsigned char, void (*)(unsigned char*)> owner(packed, tjFree);
    require(result == 0, "cannot encode a JPEG of {}x{}: {}", pixels.size.width, pixels.size.height, tjGetErrorStr2(handle.get()));
    return {reinterpret_cast<const char*>(packed), size};
}

}  // namespace convoy
