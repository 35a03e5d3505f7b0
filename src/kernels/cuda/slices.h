// The factors of a gradient of weights cut into slices of channels that each lie together, and the products put together again. All lie channels last.
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

struct Slices {
    int count;
    Operand x, w, y;  // whole
    void *x_slices = nullptr, *w_slices = nullptr;
    // Of f32:
    void *y_halves = nullptr, *scales = nullptr;

    bool halved() const { return x.desc.dtype == DType::f32; }
    int64_t scales_bytes() const;
};
void start_cutting(const Device& device, const Slices& slices);
void start_joining(const Device& device, const Slices& slices);

}  // namespace convoy::cuda
