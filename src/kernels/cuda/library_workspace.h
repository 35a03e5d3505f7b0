// The memory that convolutions by cuDNN are given to work in: engines that transform keep what they transformed, and some ways keep copies.
#pragma once

#include "kernels/patterns.h"

namespace convoy::cuda {

// Counted up with the ways that there are: what was chosen of others, and what they needed, is not asked for then.
constexpr int kWays = 4;

// For any way, until one is chosen; from then on as much as that one needs.
int64_t library_workspace(const Problem& problem, bool transforms);
void remember_workspace(const Problem& problem, bool transforms, int64_t bytes);

}  // namespace convoy::cuda
