// Combining two vectors element by element: the arithmetic of reductions.
#pragma once

#include <cstddef>

#include "comm/collective.h"

namespace convoy {

// dst[i] = a[i] op b[i]. dst may be a or b itself. Sums of integers wrap round; a NaN makes the result NaN, and of two the first stays, so that
// ranks which combine in the same order get the same bits.
using Combine = void (*)(std::byte* dst, const std::byte* a, const std::byte* b, int64_t count);

// Error for a type that collectives do not add (f16, tf32).
Combine combine_of(DType dtype, ReduceOp op);

}  // namespace convoy
