// The gradient of a convolution's weights in float32, tile by tile through shared memory: for volumes and for few channels, where the library's
// engines are slow. Stride and dilation 1, any padding, any layout.
#pragma once

#include <optional>

#include "kernels/cuda/device.h"
#include "kernels/cuda/views.h"

namespace convoy::cuda {

struct TiledGradWeight {
    Volume x, w, y;  // w's n counts filters, its size is the kernel
    Window3 window;
    int kernel_width, channels, filters, lines, columns, groups;  // of a block's tile; groups of its threads that share the lines
    int splits;                                                   // blocks that share the positions
    int64_t scratch_bytes;
};
// Nothing for what it does not take.
std::optional<TiledGradWeight> tiled_grad_weight(const Window& window, const Operand& x, const Operand& w, const Operand& y);
// Starts dw = the gradient; `scratch` has scratch_bytes.
void start_tiled_grad_weight(const Device& device, const TiledGradWeight& conv, const Operand& x, const Operand& dy, const Operand& dw,
                             void* scratch);

}  // namespace convoy::cuda
