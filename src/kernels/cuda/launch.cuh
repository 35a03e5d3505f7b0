// Starting kernels, and the sums that blocks make.
#pragma once

#include <algorithm>
#include <utility>

#include "kernels/cuda/device.h"
#include "kernels/cuda/types.cuh"

namespace convoy::cuda {

constexpr int kThreads = 256;
constexpr int64_t kMostBlocks = 132 * 16;  // of loops that stride over the grid

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
// Blocks for so many items, one to a thread and more when there are many.
inline dim3 grid_for(int64_t items) { return dim3(static_cast<unsigned>(std::clamp<int64_t>(ceil_div(items, kThreads), 1, kMostBlocks))); }

// Starts a kernel behind what the stream holds, with so much memory that its blocks share beside what it declares.
template <class... Parameters, class... Arguments>
void launch_sharing(cudaStream_t stream, int64_t shared_bytes, void (*kernel)(Parameters...), dim3 grid, dim3 block,
                    Arguments&&... arguments) {
    cudaLaunchConfig_t config{};
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = static_cast<size_t>(shared_bytes);
    config.stream = stream;
    check(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...), "starting a kernel");
}
template <class... Parameters, class... Arguments>
void launch(const Device& device, void (*kernel)(Parameters...), dim3 grid, dim3 block, Arguments&&... arguments) {
    launch_sharing(device.stream(), 0, kernel, grid, block, std::forward<Arguments>(arguments)...);
}

// The sum over a warp, in every lane.
template <class W>
__device__ __forceinline__ W warp_sum(W value) {
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
    return value;
}
template <class W>
__device__ __forceinline__ W warp_max(W value) {
    for (int step = 16; step > 0; step /= 2) {
        const W other = __shfl_xor_sync(0xffffffffu, value, step);
        value = other > value || other != other ? other : value;  // a NaN stays
    }
    return value;
}

// The sum over a block of at most 1024 threads, in thread 0. All threads must call it; it may be called again at once.
template <class W>
__device__ W block_sum(W value) {
    __shared__ W parts[32];
    value = warp_sum(value);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (lane == 0) parts[warp] = value;
    __syncthreads();
    value = threadIdx.x < blockDim.x / 32 ? parts[lane] : W{0};
    if (warp == 0) value = warp_sum(value);
    __syncthreads();
    return value;
}

}  // namespace convoy::cuda
