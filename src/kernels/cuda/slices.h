// The factors of a gradient of weights cut into pieces, slices of channels of parts of the batch, one after the other, and the products put together again. All lie
// channels last.
//
// Numbers of f32 become halves (f16), which have the ten digits that tf32 keeps and which tensor cores take at twice its rate; so do the gradients. Every
// channel is scaled by a power of two such that its norm is below 2^7: no sum of products of two channels can overflow, and over n positions what is
// 2^-20 * sqrt(n) of a channel's mean (square) magnitude or more keeps its digits. (Norms beyond 2^60, or below 2^-60, are taken for those.)
#pragma once

#include "kernels/cuda/device.h"
#include "kernels/cuda/views.h"

namespace convoy::cuda {

struct SliceProblem {
    DType compute;
    int64_t channels, filters;
    double work;  // operations
};
// Whether it may be cut into so many. (One: as halves.)
bool can_cut(const SliceProblem& problem, int count);
// Into how many parts a batch is cut, so that the halves of a piece of x take no more memory than they should.
int parts_of_batch(const Shape& x, int slices);

struct Slices {
    int count;
    Operand x, w, y;           // whole
    int parts = 1;             // of the batch; more than one of f32 only
    void* x_piece = nullptr;   // one at a time
    void* products = nullptr;  // all, one after the other
    // Of f32:
    void* y_halves = nullptr;  // of one part at a time
    void* scales = nullptr;
    int pieces() const { return parts * count; }

    bool halved() const { return x.desc.dtype == DType::f32; }
    int64_t scales_bytes() const;
};
// Before the first piece: the scales, where there are any.
void start_scaling(const Device& device, const Slices& slices);
// The piece with this index, part by part and slice by slice.
void start_cutting(const Device& device, const Slices& slices, int index);
void start_joining(const Device& device, const Slices& slices);

}  // namespace convoy::cuda
