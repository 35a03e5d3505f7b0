// A function of corresponding elements: out[i] = f(in[0][i], ..). Operands lie alike, so memory is passed over as it lies. F has Element, kMost
// (inputs at most), count() of inputs, in, out, and W operator()(const W* values).
#pragma once

#include <algorithm>

#include "kernels/cuda/launch.cuh"
#include "kernels/function_kernel.h"

namespace convoy::cuda {

namespace map_detail {

template <class F, int V>
__device__ __forceinline__ void map_at(const F& f, int64_t i) {
    using T = typename F::Element;
    Pack<T, V> in[F::kMost];
#pragma unroll
    for (int k = 0; k < F::kMost; ++k)
        if (k < f.count()) in[k] = load<V>(f.in[k] + i);
    Pack<T, V> out;
#pragma unroll
    for (int v = 0; v < V; ++v) {
        Wide<T> values[F::kMost];
#pragma unroll
        for (int k = 0; k < F::kMost; ++k) values[k] = k < f.count() ? widen(in[k].at[v]) : Wide<T>{0};
        out.at[v] = narrow<T>(f(values));
    }
    store<V>(f.out + i, out);
}

template <class F>
__global__ void __launch_bounds__(kThreads) map(F f, int64_t packs, int64_t count) {
    constexpr int V = kFullPack<typename F::Element>;
    const int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x, step = static_cast<int64_t>(gridDim.x) * blockDim.x;
    for (int64_t i = first; i < packs; i += step) map_at<F, V>(f, i * V);
    for (int64_t i = packs * V + first; i < count; i += step) map_at<F, 1>(f, i);
}

}  // namespace map_detail

template <class F>
void start_map(const Device& device, const F& f, int64_t count) {
    if (count == 0) return;
    bool aligned = reinterpret_cast<uintptr_t>(f.out) % 16 == 0;
    for (int k = 0; k < f.count(); ++k) aligned = aligned && reinterpret_cast<uintptr_t>(f.in[k]) % 16 == 0;
    const int64_t packs = aligned ? count / kFullPack<typename F::Element> : 0;
    launch(device, map_detail::map<F>, grid_for(std::max(packs, count - packs * kFullPack<typename F::Element>)), kThreads, f, packs,
           count);
}

template <class F>
std::unique_ptr<Kernel> map_kernel(Device& device, const F& f, int64_t count) {
    return make_kernel([&device, f, count](const StepContext&) { start_map(device, f, count); });
}

template <class T, int kInputs>
struct Mapping {
    using Element = T;
    using W = Wide<T>;
    static constexpr int kMost = kInputs;
    const T* in[kInputs];
    T* out;
    __device__ __host__ static constexpr int count() { return kInputs; }
};

}  // namespace convoy::cuda
