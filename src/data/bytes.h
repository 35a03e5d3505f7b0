// The bytes of files that others wrote: a read-only mapping, numbers inside it, and sizes that a header claims. What a header claims is
// compared with what the file holds before anything is allocated.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "tensor/tensor.h"

namespace convoy {

static_assert(std::endian::native == std::endian::little, "the file formats are read on little-endian machines");

// A whole file in memory, read by the system as it is touched. The file must not be cut shorter while it is mapped; replacing it by another
// (as AtomicFile does) is harmless.
class MappedFile {
  public:
    // Error when the file cannot be opened or is no regular file.
    explicit MappedFile(const std::filesystem::path& path);
    ~MappedFile();
    MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
    MappedFile& operator=(MappedFile&& other) noexcept {
        std::swap(bytes_, other.bytes_);
        return *this;
    }

    std::string_view bytes() const { return bytes_; }

  private:
    std::string_view bytes_;
};

// The number at `data`, which need not be aligned.
template <class T>
T load_little(const char* data) {
    T value;
    std::memcpy(&value, data, sizeof value);
    return value;
}

template <class T>
T load_big(const char* data) {
    std::array<char, sizeof(T)> bytes;
    std::reverse_copy(data, data + sizeof(T), bytes.begin());
    return std::bit_cast<T>(bytes);
}

// Bytes of a tensor of this shape with `unit` bytes per element, or nothing when a size is negative or when the product of the sizes, zeros
// left out, passes 2^62 bytes. Zeros are left out so that strides and partial products of the shape fit as well.
std::optional<int64_t> checked_bytes(const Shape& shape, int64_t unit);

// `text` in quotes for a message, control characters replaced, and cut when it is very long.
std::string in_quotes(std::string_view text);

}  // namespace convoy
