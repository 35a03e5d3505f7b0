// JPEG, through libjpeg-turbo. A build without it has absent_jpeg.cpp, whose functions say so.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "data/pixels.h"

namespace convoy {

// Whether the bytes begin as a JPEG file does.
bool is_jpeg(std::string_view bytes);

// One thread's decoder. `name` begins every Error.
class JpegDecoder {
  public:
    JpegDecoder();
    ~JpegDecoder();
    JpegDecoder(JpegDecoder&&) noexcept;
    JpegDecoder& operator=(JpegDecoder&&) noexcept;

    // As the header says.
    ImageSize size(std::string_view bytes, const std::string& name);
    // The picture, at `eighths` eighths of its size, rounded up (1..8): the decoder computes only what that needs. Grey and CMYK become RGB. Error when
    // the file is damaged or ends early.
    void decode(std::string_view bytes, int eighths, Pixels& pixels, const std::string& name);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

// Requires a picture of at least one pixel and a quality in 1..100.
std::string encode_jpeg(const Pixels& pixels, int quality);

}  // namespace convoy
