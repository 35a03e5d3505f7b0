// NumPy's .npy files, for exchanging single arrays with other tools and for reference values in tests.
#pragma once

#include <filesystem>

#include "tensor/tensor.h"

namespace convoy {

// The array in an .npy file of version 1, 2 or 3. Little-endian f8, f4, f2, i8, i4 and u1 stay what they are; i1, i2 and u2 become i32, and
// booleans u8. Arrays in Fortran order are transposed into row-major order; the shape stays. Error for other types (by name), more than 8
// dims, a malformed header, or fewer or more bytes than the header says.
Tensor read_npy(const std::filesystem::path& path);

// Writes the array as version 1, atomically. Error for bf16, which NumPy lacks.
void write_npy(const std::filesystem::path& path, const Tensor& tensor);

}  // namespace convoy
