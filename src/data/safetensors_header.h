// The header of a safetensors file: what tensors there are and where. Internal to safetensors.cpp; apart from it because this is the part
// that faces whatever is in a file.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/dims.h"
#include "tensor/dtype.h"

namespace convoy {

// The key of the header that is no tensor.
inline constexpr std::string_view kMetadataKey = "__metadata__";
// The format's limit on the header.
inline constexpr int64_t kMostHeaderBytes = 100'000'000;

struct SafetensorsType {
    std::string_view name;
    int64_t bytes;
    std::optional<DType> dtype;  // none: known to the format, but not to us
};

// The type with this name in the format, or null.
const SafetensorsType* safetensors_type(std::string_view name);
// The format's type for ours, or null (tf32 describes no memory).
const SafetensorsType* safetensors_type(DType type);

struct SafetensorsEntry {
    std::string name;
    const SafetensorsType* type = nullptr;
    Shape shape;
    int64_t begin = 0, end = 0;  // in the buffer after the header
};

struct SafetensorsHeader {
    std::vector<SafetensorsEntry> entries;  // in the order of their data
    std::map<std::string, std::string> metadata;
};

// Parses and validates the header's text for a buffer of `buffer_bytes`. Ensures that every entry has a known type and exactly its
// shape's bytes, that names are unique and that the entries cover the buffer without holes or overlaps. Error, naming `file` and the
// tensor, otherwise.
SafetensorsHeader parse_safetensors_header(std::string_view text, int64_t buffer_bytes, const std::string& file);

}  // namespace convoy
