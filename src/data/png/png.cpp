#include "data/png/png.h"

#include <array>
#include <memory>

#include <png.h>

#include "base/error.h"

namespace convoy {

namespace {

constexpr int64_t kMostGrowth = 1032;  // of what deflate has packed

// Of a row before it was packed, from a header that libpng has accepted: the width, the bits of a sample and the kind of colours have fixed places.
int64_t row_bytes(std::string_view bytes) {
    constexpr size_t kWidth = 16, kDepth = 24, kColour = 25;
    constexpr std::array<int64_t, 7> kSamples{1, 1, 3, 1, 2, 1, 4};  // grey, -, RGB, palette, grey and alpha, -, RGB and alpha
    const auto at = [&](size_t place) { return int64_t{static_cast<uint8_t>(bytes[place])}; };
    const int64_t width = at(kWidth) << 24 | at(kWidth + 1) << 16 | at(kWidth + 2) << 8 | at(kWidth + 3);
    return 1 + (width * at(kDepth) * kSamples.at(static_cast<size_t>(at(kColour))) + 7) / 8;
}

// Frees what libpng holds at the end, whatever happens.
struct Image : png_image {
    Image() : png_image{} {}
    ~Image() { png_image_free(this); }
    Image(const Image&) = delete;
    Image& operator=(const Image&) = delete;
};

class Reader {
  public:
    Reader(std::string_view bytes, const std::string& name) : name_(name) {
        image_.version = PNG_IMAGE_VERSION;
        require(png_image_begin_read_from_memory(&image_, bytes.data(), bytes.size()) != 0, "{}: corrupt PNG header: {}", name,
                std::string(image_.message));
        require(int64_t{image_.width} * image_.height <= kMostPixels, "{}: expected a picture of at most {} pixels, found {}x{}", name,
                kMostPixels, image_.width, image_.height);
        require(row_bytes(bytes) * image_.height <= kMostGrowth * static_cast<int64_t>(bytes.size()),
                "{}: corrupt PNG: {} bytes are too few for {}x{} pixels", name, bytes.size(), image_.width, image_.height);
    }

    ImageSize size() const { return {image_.width, image_.height}; }
    void read(uint8_t* rgb) {
        image_.format = PNG_FORMAT_RGB;
        const png_color black{0, 0, 0};
        require(png_image_finish_read(&image_, &black, rgb, 0, nullptr) != 0, "{}: corrupt PNG: {}", name_, std::string(image_.message));
        // A warning: the picture was read, but not as it was written (a wrong checksum, a chunk that makes no sense).
        require(image_.warning_or_error == 0, "{}: corrupt PNG: {}", name_, std::string(image_.message));
    }

  private:
    const std::string& name_;
    Image image_;
};

}  // namespace

bool is_png(std::string_view bytes) { return bytes.substr(0, 8) == "\x89PNG\r\n\x1a\n"; }

ImageSize png_size(std::string_view bytes, const std::string& name) { return Reader(bytes, name).size(); }

void decode_png(std::string_view bytes, Pixels& pixels, const std::string& name) {
    Reader reader(bytes, name);
    pixels.resize(reader.size());
    reader.read(pixels.rgb.data());
}

std::string encode_png(const Pixels& pixels) {
    CONVOY_CHECK(pixels.size.width >= 1 && pixels.size.height >= 1, "a PNG of {}x{}", pixels.size.width, pixels.size.height);
    png_image header{};
    header.version = PNG_IMAGE_VERSION;
    header.width = static_cast<png_uint_32>(pixels.size.width);
    header.height = static_cast<png_uint_32>(pixels.size.height);
    header.format = PNG_FORMAT_RGB;
    std::string bytes;
    const auto encode = [&](void* memory, png_alloc_size_t size) {  // without memory: only how much it takes
        const bool done = png_image_write_to_memory(&header, memory, &size, 0, pixels.rgb.data(), 0, nullptr) != 0;
        require(done, "cannot encode a PNG of {}x{}: {}", pixels.size.width, pixels.size.height, std::string(header.message));
        return size;
    };
    bytes.resize(encode(nullptr, 0));
    bytes.resize(encode(bytes.data(), bytes.size()));
    return bytes;
}

}  // namespace convoy
