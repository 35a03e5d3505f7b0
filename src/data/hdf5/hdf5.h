// HDF5 files: arrays by name, read whole or a box at a time, and written. A build without HDF5 has absent_hdf5.cpp, whose functions say so.
//
// Threads may read at the same time, but in the library they are one after the other.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/tensor.h"

namespace convoy {

// Whether this build has it.
bool has_hdf5();

// Whether the bytes begin as an HDF5 file does.
bool is_hdf5(std::string_view bytes);

struct Hdf5Array {
    Shape shape;                // no dims: a scalar
    DType dtype = DType::f32;   // that holds its values: f64, f32 and u8 stay what they are, f16 becomes f32, other integers i32 or i64
    int64_t element_bytes = 0;  // in the file
};

class Hdf5File {
  public:
    // Error when it is missing or no HDF5 file.
    explicit Hdf5File(const std::filesystem::path& path);
    ~Hdf5File();
    Hdf5File(Hdf5File&&) noexcept;
    Hdf5File& operator=(Hdf5File&&) noexcept;

    // The arrays at the root, sorted by name.
    std::vector<std::string> names() const;
    // Error when there is no such array, or one of more than 8 dims or of no number type.
    const Hdf5Array& array(const std::string& name) const;
    // An integer attribute of an array; nothing when it has none of that name.
    std::optional<int64_t> attribute(const std::string& array, const std::string& name) const;

    // A box of an array, dense, as elements of `type`, converted by the library. Requires a box inside it and room for it.
    void read(const std::string& name, const Box& box, DType type, void* out) const;
    // The same as a tensor of array(name).dtype; the whole array.
    Tensor read(const std::string& name, const Box& box) const;
    Tensor read(const std::string& name) const { return read(name, Box::whole(array(name).shape)); }

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

// A file in the making, in memory; `commit` puts it into its place in one step. Without it nothing is written.
class Hdf5Writer {
  public:
    explicit Hdf5Writer(std::filesystem::path path);
    ~Hdf5Writer();
    Hdf5Writer(const Hdf5Writer&) = delete;
    Hdf5Writer& operator=(const Hdf5Writer&) = delete;

    // Elements lie one after the other; with `chunk`, in compressed pieces of that shape. Error for bf16 and f16, which this does not write.
    void write(const std::string& name, const Tensor& tensor, const Shape& chunk = {});
    // Of an array that was written.
    void attribute(const std::string& array, const std::string& name, int64_t value);
    void commit();

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace convoy
