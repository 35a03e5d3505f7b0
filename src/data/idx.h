// The IDX format, in which MNIST and its relatives come: two zero bytes, a type, the number of dims, the dims and the elements, all
// big-endian; often gzipped.
#pragma once

#include <filesystem>
#include <string>

#include "tensor/tensor.h"

namespace convoy {

// The tensor in an IDX file, gzipped or not (seen from its first bytes, not from its name). u8, f32 and f64 stay what they are; s8, i16 and
// i32 become i32. Ensures 1 to 8 dims. Error when the file is missing, is not IDX, or holds fewer or more bytes than its header says.
Tensor read_idx(const std::filesystem::path& path);

// The bytes of an IDX file with this tensor, not gzipped. Error unless it is u8, i32, f32 or f64 with 1 to 8 dims below 2^32.
std::string encode_idx(const Tensor& tensor);

}  // namespace convoy
