// The implementations that oneDNN backs.
#pragma once

#include "kernels/cpu/implementation.h"

namespace convoy::cpu {

const Implementation& onednn_conv();
const Implementation& winograd3d();
// The same with another size of what should stay in the cache, which decides in how many chunks activations are done.
std::unique_ptr<Implementation> make_winograd3d(int64_t cached_bytes);
const Implementation& onednn_linear();

}  // namespace convoy::cpu
