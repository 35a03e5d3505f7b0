// PNG, through libpng.
#pragma once

#include <string>
#include <string_view>

#include "data/pixels.h"

namespace convoy {

// Whether the bytes begin as a PNG file does.
bool is_png(std::string_view bytes);

// As the header says. `name` begins every Error.
ImageSize png_size(std::string_view bytes, const std::string& name);
// The picture with 8 bits a channel; grey becomes RGB, and what is transparent lies on black. Error when the file is damaged or ends early.
void decode_png(std::string_view bytes, Pixels& pixels, const std::string& name);

// Requires a picture of at least one pixel.
std::string encode_png(const Pixels& pixels);

}  // namespace convoy
