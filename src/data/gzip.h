// Reading gzipped bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace convoy {

// Whether the bytes begin as a gzip file does.
bool is_gzip(std::string_view bytes);

// The first `most` bytes of what `packed` holds, or all of it when that is less. The checksum is verified when the end is reached. Memory
// grows with what is really there, never with `most`. Error, naming `name`, when the stream is damaged, ends early, or is followed by
// anything but another gzip stream.
std::string gunzip(std::string_view packed, int64_t most, const std::string& name);

}  // namespace convoy
