#include "data/jpeg/jpeg.h"

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <jpeglib.h>

#include "base/error.h"

namespace convoy {

namespace {

// What the library says goes into our Errors. It ends a call by a jump, so that nothing with a destructor may live between `guarded` and the library.
struct Reporter {
    jpeg_error_mgr manager{};
    std::jmp_buf home{};
    std::array<char, JMSG_LENGTH_MAX> text{};
    bool damaged = false;

    static Reporter& of(j_common_ptr info) { return *reinterpret_cast<Reporter*>(info->err); }
    static void fail(j_common_ptr info) {
        info->err->format_message(info, of(info).text.data());
        std::longjmp(of(info).home, 1);
    }
    // Below 0: a warning. Bytes too many between two markers do no harm; everything else has cost parts of the picture.
    static void hear(j_common_ptr info, int level) {
        Reporter& reporter = of(info);
        if (level >= 0 || reporter.damaged) return;
        info->err->format_message(info, reporter.text.data());
        reporter.damaged = std::string_view(reporter.text.data()).find("extraneous bytes") == std::string_view::npos;
    }

    jpeg_error_mgr* install() {
        jpeg_std_error(&manager);
        manager.error_exit = fail;
        manager.emit_message = hear;
        return &manager;
    }
};
static_assert(offsetof(Reporter, manager) == 0, "the library gives back a pointer to the first member");

// False when the library gave up. Never part of its caller, whose variables must not live in registers across the jump.
template <class F>
[[gnu::noinline]] bool guarded(Reporter& reporter, F&& call) {
    if (setjmp(reporter.home) != 0) return false;  // NOLINT(cert-err52-cpp): how the library reports
    call();
    return true;
}

// Of CMYK as Adobe's programs write it, inverted.
void from_cmyk(const uint8_t* cmyk, int64_t count, uint8_t* rgb) {
    for (int64_t i = 0; i < count; ++i)
        for (int64_t c = 0; c < 3; ++c) rgb[3 * i + c] = static_cast<uint8_t>(cmyk[4 * i + c] * cmyk[4 * i + 3] / 255);
}

// Whether the end of the picture is there: nothing below what is wanted is decoded, so that nobody would notice.
bool has_end(std::string_view bytes) {
    constexpr size_t kTail = 4096;
    return bytes.substr(bytes.size() - std::min(bytes.size(), kTail)).find("\xff\xd9") != std::string_view::npos;
}

}  // namespace

struct JpegDecoder::Impl {
    Impl() {
        info.err = reporter.install();
        const bool made = guarded(reporter, [&] { jpeg_create_decompress(&info); });
        require(made, "cannot start libjpeg-turbo: {}", reporter.text.data());
    }
    ~Impl() { jpeg_destroy_decompress(&info); }
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    void read_header(std::string_view bytes, const std::string& name) {
        reporter.damaged = false;
        const auto* const data = reinterpret_cast<const unsigned char*>(bytes.data());
        const bool read = guarded(reporter, [&] {
            jpeg_abort_decompress(&info);
            jpeg_mem_src(&info, data, bytes.size());
            jpeg_read_header(&info, TRUE);
        });
        require(read, "{}: corrupt JPEG header: {}", name, reporter.text.data());
        require(int64_t{info.image_width} * info.image_height <= kMostPixels, "{}: expected a picture of at most {} pixels, found {}x{}",
                name, kMostPixels, info.image_width, info.image_height);
        // Every block of 8x8 pixels takes at least a bit.
        const int64_t blocks = int64_t{(info.image_width + 7) / 8} * ((info.image_height + 7) / 8);
        require(blocks <= 8 * static_cast<int64_t>(bytes.size()), "{}: corrupt JPEG: {} bytes are too few for {}x{} pixels", name,
                bytes.size(), info.image_width, info.image_height);
    }

    Reporter reporter;
    jpeg_decompress_struct info{};
    std::vector<uint8_t> cmyk;
};

JpegDecoder::JpegDecoder() : impl_(std::make_unique<Impl>()) {}
JpegDecoder::~JpegDecoder() = default;
JpegDecoder::JpegDecoder(JpegDecoder&&) noexcept = default;
JpegDecoder& JpegDecoder::operator=(JpegDecoder&&) noexcept = default;

bool has_jpeg() { return true; }

bool is_jpeg(std::string_view bytes) { return bytes.substr(0, 3) == "\xff\xd8\xff"; }

ImageSize JpegDecoder::size(std::string_view bytes, const std::string& name) {
    impl_->read_header(bytes, name);
    return {impl_->info.image_width, impl_->info.image_height};
}

ImageSize JpegDecoder::scaled(ImageSize size, int eighths) { return {(size.width * eighths + 7) / 8, (size.height * eighths + 7) / 8}; }

PixelBox JpegDecoder::decode(std::string_view bytes, int eighths, const PixelBox& part, Pixels& pixels, const std::string& name) {
    CONVOY_CHECK(eighths >= 1 && eighths <= 8, "a picture at {} eighths of its size", eighths);
    impl_->read_header(bytes, name);
    require(has_end(bytes), "{}: corrupt JPEG: premature end of the file", name);
    jpeg_decompress_struct& info = impl_->info;
    Reporter& reporter = impl_->reporter;
    const ImageSize whole = scaled({info.image_width, info.image_height}, eighths);
    CONVOY_CHECK(part.x >= 0 && part.y >= 0 && part.width >= 1 && part.height >= 1 && part.x + part.width <= whole.width &&
                     part.y + part.height <= whole.height,
                 "{}: a part of {}x{} at {},{} of a picture of {}x{}", name, part.width, part.height, part.x, part.y, whole.width,
                 whole.height);
    info.scale_num = static_cast<unsigned>(eighths);
    info.scale_denom = 8;
    const bool cmyk = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
    info.out_color_space = cmyk ? JCS_CMYK : JCS_RGB;
    auto left = static_cast<JDIMENSION>(part.x), width = static_cast<JDIMENSION>(part.width);
    bool done = guarded(reporter, [&] {
        jpeg_start_decompress(&info);
        if (static_cast<int64_t>(width) < whole.width) jpeg_crop_scanline(&info, &left, &width);
        if (part.y > 0) jpeg_skip_scanlines(&info, static_cast<JDIMENSION>(part.y));
    });
    require(done, "{}: corrupt JPEG: {}", name, reporter.text.data());
    pixels.resize({width, part.height});
    if (cmyk) impl_->cmyk.resize(static_cast<size_t>(4 * width));
    done = guarded(reporter, [&] {
        for (int64_t y = 0; y < part.height; ++y) {
            uint8_t* row = cmyk ? impl_->cmyk.data() : pixels.row(y);
            jpeg_read_scanlines(&info, &row, 1);
            if (cmyk) from_cmyk(row, width, pixels.row(y));
        }
        jpeg_abort_decompress(&info);
    });
    require(done && !reporter.damaged, "{}: corrupt JPEG: {}", name, reporter.text.data());
    return {left, part.y, width, part.height};
}

void JpegDecoder::decode(std::string_view bytes, int eighths, Pixels& pixels, const std::string& name) {
    const ImageSize whole = scaled(size(bytes, name), eighths);
    decode(bytes, eighths, {0, 0, whole.width, whole.height}, pixels, name);
}

std::string encode_jpeg(const Pixels& pixels, int quality) {
    CONVOY_CHECK(pixels.size.width >= 1 && pixels.size.height >= 1 && quality >= 1 && quality <= 100, "a JPEG of {}x{} at quality {}",
                 pixels.size.width, pixels.size.height, quality);
    struct Encoder {
        Reporter reporter;
        jpeg_compress_struct info{};
        unsigned char* packed = nullptr;
        unsigned long size = 0;
        ~Encoder() {
            jpeg_destroy_compress(&info);
            std::free(packed);  // NOLINT(cppcoreguidelines-no-malloc): the library's
        }
    } encoder;
    jpeg_compress_struct& info = encoder.info;
    info.err = encoder.reporter.install();
    const bool done = guarded(encoder.reporter, [&] {
        jpeg_create_compress(&info);
        jpeg_mem_dest(&info, &encoder.packed, &encoder.size);
        info.image_width = static_cast<JDIMENSION>(pixels.size.width);
        info.image_height = static_cast<JDIMENSION>(pixels.size.height);
        info.input_components = 3;
        info.in_color_space = JCS_RGB;
        jpeg_set_defaults(&info);
        jpeg_set_quality(&info, quality, TRUE);
        jpeg_start_compress(&info, TRUE);
        for (int64_t y = 0; y < pixels.size.height; ++y) {
            auto* row = const_cast<uint8_t*>(pixels.row(y));
            jpeg_write_scanlines(&info, &row, 1);
        }
        jpeg_finish_compress(&info);
    });
    require(done, "cannot encode a JPEG of {}x{}: {}", pixels.size.width, pixels.size.height, encoder.reporter.text.data());
    return {reinterpret_cast<const char*>(encoder.packed), encoder.size};
}

}  // namespace convoy
