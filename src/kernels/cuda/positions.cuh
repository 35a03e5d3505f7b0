// Threads over the elements of an activation, in the order of its memory: a pack of V channels where channels lie last, an element otherwise.
#pragma once

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/views.h"

namespace convoy::cuda {

__device__ __forceinline__ uint32_t quotient(const Divisor& d, uint32_t n) {
    const uint32_t high = __umulhi(d.factor, n);
    return (high + ((n - high) >> d.shift1)) >> d.shift2;
}

// Items of a grid's loop: for (uint32_t i = first_item(); i < count; i = next_item(i, count)). The next number may need more than 32 bits; then it is `count`.
__device__ __forceinline__ uint32_t first_item() { return blockIdx.x * blockDim.x + threadIdx.x; }
__device__ __forceinline__ uint32_t next_item(uint32_t i, uint32_t count) {
    const uint32_t step = gridDim.x * blockDim.x;
    return count - i > step ? i + step : count;
}

struct Position {
    int64_t n, c;
    int at[3];
};

template <bool kLast, int V>
__device__ __forceinline__ Position position_of(const Volume& v, uint32_t i) {
    Position p;
    const auto take = [&](const Divisor& by) {
        const uint32_t rest = quotient(by, i), at = i - rest * by.by;
        i = rest;
        return static_cast<int>(at);
    };
    constexpr int kPack = V == 1 ? 0 : V == 2 ? 1 : V == 4 ? 2 : 3;
    if constexpr (kLast) p.c = static_cast<int64_t>(take(v.by_packs[kPack])) * V;
    p.at[2] = take(v.by_size[2]);
    p.at[1] = take(v.by_size[1]);
    p.at[0] = take(v.by_size[0]);
    if constexpr (!kLast) p.c = take(v.by_packs[0]);
    p.n = i;
    return p;
}

__device__ __forceinline__ int64_t offset_of(const Volume& v, const Position& p) {
    return p.n * v.stride_n + p.c * v.stride_c + p.at[0] * v.stride[0] + p.at[1] * v.stride[1] + p.at[2] * v.stride[2];
}

// Calls fn(V, last) with integral constants: how wide a pack two activations with the same channels allow.
template <class T, class Fn>
void with_packs(const Volume& x, const Volume& y, const Fn& fn) {
    constexpr int V = kFullPack<T>;
    const bool last = x.stride_c == 1 && y.stride_c == 1 && x.c > 1;
    if (last && x.c % V == 0) return fn(std::integral_constant<int, V>{}, std::bool_constant<true>{});
    if (last) return fn(std::integral_constant<int, 1>{}, std::bool_constant<true>{});
    fn(std::integral_constant<int, 1>{}, std::bool_constant<false>{});
}

// The outputs [first, last] of a window whose windows may hold input i, along dim d.
struct Covering {
    int first, last;
};
__device__ __forceinline__ Covering covering(const Window3& w, int d, int i, int64_t outputs) {
    const int ahead = i + w.pad[d] - (w.kernel[d] - 1) * w.dilation[d];
    const int first = ahead <= 0 ? 0 : static_cast<int>(quotient(w.by_stride[d], static_cast<uint32_t>(ahead + w.stride[d] - 1)));
    const int reach = i + w.pad[d];
    const int last =
        reach < 0 ? -1 : min(static_cast<int>(quotient(w.by_stride[d], static_cast<uint32_t>(reach))), static_cast<int>(outputs) - 1);
    return {first, last};
}
// The place in the window of output o that input i has, or -1.
__device__ __forceinline__ int tap_of(const Window3& w, int d, int i, int o) {
    const int off = i + w.pad[d] - o * w.stride[d];
    const int tap = static_cast<int>(quotient(w.by_dilation[d], static_cast<uint32_t>(max(off, 0))));
    return off >= 0 && tap * w.dilation[d] == off && tap < w.kernel[d] ? tap : -1;
}
// The input under place k of the window of output o; outside [0, size) it is padding.
__device__ __forceinline__ int source_of(const Window3& w, int d, int o, int k) { return o * w.stride[d] - w.pad[d] + k * w.dilation[d]; }

}  // namespace convoy::cuda
