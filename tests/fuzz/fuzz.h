// What all fuzz targets share: the input as a file, and a limit on memory. A target hands arbitrary bytes to a parser; an Error is the right answer to
// most of them. Whatever else happens is a finding: another exception, a crash, a sanitizer's report, a hang, or memory out of proportion to the input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace convoy::fuzz {

inline std::string_view text_of(const uint8_t* data, size_t size) { return {reinterpret_cast<const char*>(data), size}; }

// A directory of this process, in memory where there is such a file system; removed at exit.
const std::filesystem::path& directory();

// A file with these bytes in that directory.
std::filesystem::path file(const std::string& name, std::string_view bytes);

// Calls the parser, which may throw Error. Stops the process, so that the fuzzer keeps the input, when it throws anything else, or when at some moment it
// holds more than a MiB and `multiple` times the input.
void run(size_t input_bytes, size_t multiple, const std::function<void()>& parser);

}  // namespace convoy::fuzz
