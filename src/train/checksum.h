// A 64-bit checksum that finds damaged files. Not for adversaries.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace convoy {

// FNV-1a over words of eight little-endian bytes, the last one filled up with zeros, and then over the number of bytes. Any change within one
// word changes it for certain.
uint64_t checksum(std::string_view bytes);

// As 16 hexadecimal digits.
std::string checksum_text(std::string_view bytes);

}  // namespace convoy
