// Convolutions whose windows do not overlap, of one element above all, as products of matrices, in plain layout.
#pragma once

#include <functional>

#include "kernels/cuda/device.h"
#include "kernels/cuda/scratch.h"
#include "kernels/patterns.h"

namespace convoy::cuda {

struct ProductConv {
    Direction direction;
    Window window;
    Operand x, w, y;    // or their gradients
    bool join = false;  // a gradient of weights: samples are laid side by side first, so that there are few and large products
    int64_t part_bytes = int64_t{256} << 20;  // of a gradient of inputs that is laid out apart: channels in parts that take no more
};
// Whether it can be had so.
bool is_product(const ProductConv& conv, int64_t groups);
// What starts it, with memory of the scratch, of which `left` bytes are free then; nothing when that is too little.
std::function<void()> product_conv(Device& device, const ProductConv& conv, DType compute, Scratch scratch, int64_t& left);

}  // namespace convoy::cuda
