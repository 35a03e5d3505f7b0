// The safetensors format: named tensors in one file, a JSON header before the bytes. Checkpoints and weights travel in it.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/bytes.h"
#include "tensor/tensor.h"

namespace convoy {

struct NamedTensor {
    std::string name;
    Tensor tensor;
};

// The same, owned by somebody else.
struct NamedTensorView {
    std::string_view name;
    const Tensor* tensor = nullptr;
};

// A file open for reading. The header is validated when it is opened; tensors are read one at a time, out of a mapping of the file. Reads
// may run in several threads at once.
class SafetensorsFile {
  public:
    // Error, naming the file and the tensor, when anything in the header is not as the format says.
    explicit SafetensorsFile(const std::filesystem::path& path);

    // In the order of their data.
    const std::vector<std::string>& names() const { return names_; }
    const std::map<std::string, std::string>& metadata() const { return metadata_; }
    bool contains(std::string_view name) const { return entries_.find(name) != entries_.end(); }

    // The tensor `name`; Error when there is none. Types that the format knows and DType does not (BOOL, I8, F8_E4M3, ...) are refused by
    // dtype, bytes and read only, so that the other tensors of such a file can be used.
    const Shape& shape(std::string_view name) const { return entry(name).shape; }
    DType dtype(std::string_view name) const;
    Tensor read(std::string_view name) const;
    // Its elements where they lie, perhaps unaligned; valid while the file is open.
    std::span<const std::byte> bytes(std::string_view name) const;

  private:
    struct Entry {
        std::string_view type;
        Shape shape;
        std::string_view data;
    };
    const Entry& entry(std::string_view name) const;

    std::string path_;
    MappedFile file_;
    std::vector<std::string> names_;
    std::map<std::string, Entry, std::less<>> entries_;
    std::map<std::string, std::string> metadata_;
};

// Writes the tensors, one after the other, atomically. The order in the file is by falling element size, then by name, which keeps all
// data aligned; so the bytes depend only on what is written, not on the order in which it is given. Error when a name is repeated,
// reserved or not UTF-8, or when the disk is full.
void write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                       const std::map<std::string, std::string>& metadata = {});
void write_safetensors(const std::filesystem::path& path, std::span<const NamedTensorView> tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace convoy
