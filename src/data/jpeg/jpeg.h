// JPEG, through libjpeg-turbo. A build without it has absent_jpeg.cpp, whose functions say so.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "data/pixels.h"

namespace convoy {

// Whether this build has it.
bool has_jpeg();

// Whether the bytes begin as a JPEG file does.
bool is_jpeg(std::string_view bytes);

// A rectangle of a picture.
struct PixelBox {
    int64_t x = 0, y = 0, width = 0, height = 0;
};

// One thread's decoder. `name` begins every Error.
class JpegDecoder {
  public:
    JpegDecoder();
    ~JpegDecoder();
    JpegDecoder(JpegDecoder&&) noexcept;
    JpegDecoder& operator=(JpegDecoder&&) noexcept;

    // As the header says.
    ImageSize size(std::string_view bytes, const std::string& name);
    // The size of a picture that is decoded at `eighths` eighths of its size.
    static ImageSize scaled(ImageSize size, int eighths);

    // The picture at `eighths` eighths of its size (1..8): the decoder computes only what that needs. Of the picture only what lies in `part`, in pixels of
    // the smaller picture, and a little to its left and right; `pixels` is that, and the result says where it lies. Grey and CMYK become RGB. Error when
    // the file ends early, or is damaged in what was looked at.
    PixelBox decode(std::string_view bytes, int eighths, const PixelBox& part, Pixels& pixels, const std::string& name);
    // All of it.
    void decode(std::string_view bytes, int eighths, Pixels& pixels, const std::string& name);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

// Requires a picture of at least one pixel and a quality in 1..100.
std::string encode_jpeg(const Pixels& pixels, int quality);

}  // namespace convoy
