// How the elements of a program are stored.
#pragma once

#include "model/op.h"
#include "tensor/dtype.h"

namespace convoy {

// When computing in the floating type `compute`: real numbers in that type (tf32 is f32 in memory), precise ones never narrower than f32, indices as i32,
// bytes as u8.
DType stored_as(Element element, DType compute);

}  // namespace convoy
