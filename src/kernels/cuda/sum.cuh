// One sum over many items, in a fixed order: blocks first, then over blocks. F has kLanes (1, or 32: a warp works on one item),
// double operator()(int64_t item, int lane), of which lane 0's counts, and void finish(double sum).
#pragma once

#include "kernels/cuda/launch.cuh"

namespace convoy::cuda {

constexpr int64_t kSumBlocks = 1024;
constexpr int64_t kSumWorkspace = kSumBlocks * static_cast<int64_t>(sizeof(double));

namespace sum_detail {

template <class F>
__global__ void __launch_bounds__(kThreads) sum_blocks(F f, int64_t items, double* partial) {
    const int64_t thread = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x / F::kLanes;
    const int lane = static_cast<int>(thread % F::kLanes);
    double sum = 0;
    for (int64_t i = thread / F::kLanes; i < items; i += step) {
        const double term = f(i, lane);
        if (lane == 0) sum += term;
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

template <class F>
__global__ void __launch_bounds__(kThreads) sum_rest(F f, const double* partial, int64_t blocks) {
    double sum = 0;
    for (int64_t i = threadIdx.x; i < blocks; i += blockDim.x) sum += partial[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0) f.finish(sum);
}

}  // namespace sum_detail

// Starts it; `workspace` has kSumWorkspace bytes.
template <class F>
void start_sum(const Device& device, const F& f, int64_t items, void* workspace) {
    auto* const partial = static_cast<double*>(workspace);
    const int64_t blocks = std::clamp<int64_t>(ceil_div(items * F::kLanes, kThreads), 1, kSumBlocks);
    launch(device, sum_detail::sum_blocks<F>, dim3(static_cast<unsigned>(blocks)), kThreads, f, items, partial);
    launch(device, sum_detail::sum_rest<F>, dim3(1), kThreads, f, partial, blocks);
}

}  // namespace convoy::cuda
