// A tensor as lines along one dim, one after the other: softmax and cross-entropy work on them. One thread has a line, or a warp has.
#pragma once

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/views.h"

namespace convoy::cuda {

// Line i begins at (i / inner) * outer_stride + i % inner * inner_stride.
struct Lines {
    int64_t count, length, stride;
    int64_t inner, outer_stride, inner_stride;
    __device__ int64_t first(int64_t i) const { return i / inner * outer_stride + i % inner * inner_stride; }
};

// Along `axis` of a plain tensor.
inline Lines lines_along(const Shape& shape, int axis) {
    const int64_t inner = product(shape, axis + 1, shape.size());
    return {product(shape, 0, axis) * inner, shape[axis], inner, std::max<int64_t>(inner, 1), shape[axis] * inner, 1};
}
// Along the channels of an activation, plain or channels-last; lines are numbered as row-major [N, ..].
inline Lines lines_of_channels(const Shape& shape, const Layout& layout) {
    if (layout.is_plain()) return lines_along(shape, 1);
    const int64_t inner = product(shape, 2, shape.size());
    return {shape[0] * inner, shape[1], 1, std::max<int64_t>(inner, 1), shape[1] * inner, shape[1]};
}

// Whether a warp should share a line.
inline bool wide_lines(const Lines& lines) { return lines.length >= 32; }

template <int kLanes, class W>
__device__ __forceinline__ W lanes_sum(W value) {
    if constexpr (kLanes == 32) return warp_sum(value);
    return value;
}
template <int kLanes, class W>
__device__ __forceinline__ W lanes_max(W value) {
    if constexpr (kLanes == 32) return warp_max(value);
    return value;
}

// The largest element of a line, and the sum of exp(x - largest): together the logarithm of the sum of exponentials.
template <class W>
struct Exponentials {
    W largest, sum;
};
template <int kLanes, class T>
__device__ Exponentials<Wide<T>> exponentials(const Lines& lines, const T* line, int lane) {
    using W = Wide<T>;
    W largest = -static_cast<W>(INFINITY);
    for (int64_t k = lane; k < lines.length; k += kLanes) {
        const W value = widen(line[k * lines.stride]);
        largest = value > largest || value != value ? value : largest;
    }
    largest = lanes_max<kLanes>(largest);
    W sum = 0;
    for (int64_t k = lane; k < lines.length; k += kLanes) sum += exp(widen(line[k * lines.stride]) - largest);
    return {largest, lanes_sum<kLanes>(sum)};
}

}  // namespace convoy::cuda
