// Convolution as the definition says, in any layout, with any padding and groups: for what the library does not take, and for float64.
#pragma once

#include "kernels/cuda/device.h"
#include "kernels/patterns.h"

namespace convoy::cuda {

struct DirectConv {
    Direction direction;
    Window window;
    int64_t groups;
    Operand x, w, y;  // or their gradients; w and its gradient in x's type or wider
};
// Starts it.
void start_direct_conv(const Device& device, const DirectConv& conv);

}  // namespace convoy::cuda
