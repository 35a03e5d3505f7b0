// Where outputs of up-sampling lie among its inputs. Kernels compute by it, and what a part of a division reads follows from it: both must agree.
#pragma once

#include <cstdint>

namespace convoy {

// The input, as a position between inputs [0, in), that output o of `out` takes its value from when up-sampling linearly.
double linear_source(int64_t o, int64_t in, int64_t out, bool align_corners);

}  // namespace convoy
