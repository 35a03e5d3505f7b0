// A tiny bitmap font for pictures.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace convoy {

constexpr int kGlyphWidth = 5, kGlyphHeight = 8;

// The columns of a printable ASCII character, left to right, bit 0 on top; a blank for any other.
std::array<uint8_t, kGlyphWidth> glyph(char character);

}  // namespace convoy
