// Copies on the device: between layouts, floating types, and parts of tensors.
#pragma once

#include "kernels/cuda/device.h"
#include "kernels/cuda/views.h"

namespace convoy::cuda {

struct CopyEnd {
    void* data;
    DType dtype;
    Dims strides;
};
// Starts dst[index] = src[index] for every index of the shape; strides of 0 repeat. Types are equal, or both floating.
void start_copy(const Device& device, const Shape& shape, const CopyEnd& src, const CopyEnd& dst);
// The same for whole operands of one shape.
void start_copy(const Device& device, const Operand& src, const Operand& dst);

// Starts a copy of a channels-last tensor to one with more channels, which are zeros beyond the source's. One type.
void start_widen(const Device& device, const Operand& src, const Operand& dst);
// Starts dst = the sum of `parts` tensors like it that lie one after the other, in a fixed order.
void start_sum_of_parts(const Device& device, const void* parts, int count, const Operand& dst);

// Starts writing `value` to `count` elements that lie together.
void start_fill(const Device& device, void* data, DType dtype, int64_t count, double value);

}  // namespace convoy::cuda
