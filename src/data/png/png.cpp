#include "data/png/png.h"

#include <memory>

#include <png.h>

#include "base/error.h"

namespace convoy {

namespace {

// Opens the header; frees what libpng holds at the end, whatever happens.
class Reader {
  public:
    Reader(std::string_view bytes, const std::string& name) : name_(name) {
        image_.version = PNG_IMAGE_VERSION;
        require(png_image_begin_read_from_memory(&image_, bytes.data(), bytes.size()) != 0, "{}: corrupt PNG header: {}", name,
                std::string(image_.message));
        require(int64_t{image_.width} * image_.height <= kMostPixels, "{}: expected a picture of at most {} pixels, found {}x{}", name,
                kMostPixels, image_.width, image_.height);
    }
    ~Reader() { png_image_free(&image_); }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

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
    png_image image_{};
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
