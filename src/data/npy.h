// NumPy's .npy files, for exchanging single arrays with other tools and for reference values in tests.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "tensor/tensor.h"

namespace convoy {

// The array in an .npy file of version 1, 2 or 3. Little-endian f8, f4, f2, i8, i4 and u1 stay what they are; i1, i2 and u2 become i32, and
// booleans u8. Arrays in Fortran order are transposed into row-major order; the shape stays. Error for other types (by name), more than 8
// dims, a malformed header, or fewer or more bytes than the header says.
Tensor read_npy(const std::filesystem::path& path);

// The same from the bytes of such a file; `name` begins every Error.
Tensor decode_npy(std::string_view bytes, const std::string& name);

// An array where it lies in the bytes of an .npy file.
struct NpyView {
    Shape shape;
    DType kept = DType::f32;    // the type that read_npy would give it
    int64_t element_bytes = 0;  // in the file
    bool fortran = false;       // the first index runs fastest, under `shape`
    std::string_view data;
    // Converts `count` elements from element `first` on to f32, f64 or i32. Numbers that i32 does not hold become -1.
    void convert(int64_t first, int64_t count, DType type, std::byte* out) const;

    int type = 0;  // which of the known ones; for `convert`
};
// Errors as of read_npy.
NpyView view_npy(std::string_view bytes, const std::string& name);

// Writes the array as version 1, atomically. Error for bf16, which NumPy lacks.
void write_npy(const std::filesystem::path& path, const Tensor& tensor);

}  // namespace convoy
