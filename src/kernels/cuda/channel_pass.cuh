// One pass over activations with numbers per channel: reads up to three tensors, may write one, and may sum over each channel. Batch norm, biases and
// PReLU, forwards and backwards, are such passes; only what they do with an element differs, and that is a functor:
//
//     using Element = T;                  what the tensors hold
//     static constexpr int kIn, kSums;    tensors read, sums per channel
//     static constexpr bool kWrites;      whether a tensor is written
//     const T* in[kIn]; T* out;
//     struct Param;                       what it knows of a channel
//     Param param(int64_t c);
//     W apply(const Param&, const W (&values)[kIn], W (&sums)[..]);   the element written; adds to the sums
//     void finish(int64_t c, const double (&sums)[..]);               given the sums of channel c over everything
//
// Sums are made in a fixed order, by blocks first and then over blocks, so they are the same from run to run.
#pragma once

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/views.h"
#include "kernels/function_kernel.h"

namespace convoy::cuda {

// How a pass is divided: `chunks` parts of the positions of every channel.
struct ChannelPlan {
    ChannelView view;
    int64_t chunks;
    int64_t chunk;  // rows (channels last) or elements of a channel (planes) of each part
    // Bytes for `sums` sums per channel.
    int64_t workspace_bytes(int sums) const { return sums * chunks * view.channels * static_cast<int64_t>(sizeof(double)); }
};

// Threads of a block across the channels, where these lie last, each with a pack of so many.
inline int threads_across(int64_t channels, int pack) {
    int across = 1;
    while (across * pack < channels && across < 32) across *= 2;
    return across;
}

// For tensors of this type; `sums`: whether anything is summed, because then fewer parts are better.
inline ChannelPlan plan_channels(const ChannelView& view, DType dtype, bool sums) {
    const int64_t positions = std::max<int64_t>(view.per_channel(), 1), channels = std::max<int64_t>(view.channels, 1);
    const int full = 16 / static_cast<int>(size_of(dtype)), pack = channels % full == 0 ? full : 1;
    const int64_t tiles = view.inner == 1 ? ceil_div(channels, static_cast<int64_t>(threads_across(channels, pack)) * pack) : channels;
    // Blocks enough to fill the device, each with work enough to be worth starting.
    const int64_t blocks = sums ? 132 * 4 : 132 * 32, least = view.inner == 1 ? 32 : 1024;
    const int64_t chunks = std::min(ceil_div(positions, least), std::clamp<int64_t>(ceil_div(blocks, tiles), 1, 65535));
    return {view, chunks, ceil_div(positions, chunks)};
}

namespace channel_pass_detail {

// Packs of the tensors that are read, at the same place of each.
template <class F, int V>
struct Packs {
    Pack<typename F::Element, V> of[F::kIn];
};
template <class F, int V>
__device__ __forceinline__ Packs<F, V> load_packs(const F& f, int64_t i) {
    Packs<F, V> in;
#pragma unroll
    for (int k = 0; k < F::kIn; ++k) in.of[k] = load<V>(f.in[k] + i);
    return in;
}

template <class F, int V, class W>
__device__ __forceinline__ void pass_packs(F& f, const Packs<F, V>& in, int64_t i, const typename F::Param* params, int param_step,
                                           W (&sums)[F::kSums + 1][V]) {
    using T = typename F::Element;
    Pack<T, V> out;
#pragma unroll
    for (int v = 0; v < V; ++v) {
        W values[F::kIn], mine[F::kSums + 1];
#pragma unroll
        for (int k = 0; k < F::kIn; ++k) values[k] = widen(in.of[k].at[v]);
#pragma unroll
        for (int k = 0; k < F::kSums; ++k) mine[k] = sums[k][v];
        const W result = f.apply(params[v * param_step], values, mine);
#pragma unroll
        for (int k = 0; k < F::kSums; ++k) sums[k][v] = mine[k];
        out.at[v] = narrow<T>(result);
    }
    if constexpr (F::kWrites) store<V>(f.out + i, out);
}

// Places whose packs a thread reads before it works on the first: memory is far away.
template <class F>
constexpr int kAhead = F::kIn == 1 ? 4 : 2;

// Calls pass_packs for every place of a thread, which are at(first), at(first + step), .. below `last`.
template <class F, int V, class At, class W>
__device__ __forceinline__ void pass_places(F& f, int64_t first, int64_t last, int64_t step, const At& at, const typename F::Param* params,
                                            int param_step, W (&sums)[F::kSums + 1][V]) {
    constexpr int A = kAhead<F>;
    int64_t j = first;
    for (; j + (A - 1) * step < last; j += A * step) {
        Packs<F, V> in[A];
        int64_t place[A];
#pragma unroll
        for (int a = 0; a < A; ++a) {
            place[a] = at(j + a * step);
            in[a] = load_packs<F, V>(f, place[a]);
        }
#pragma unroll
        for (int a = 0; a < A; ++a) pass_packs<F, V>(f, in[a], place[a], params, param_step, sums);
    }
    for (; j < last; j += step) {
        const int64_t place = at(j);
        pass_packs<F, V>(f, load_packs<F, V>(f, place), place, params, param_step, sums);
    }
}

// Channels last: a block has a tile of channels, blockDim.x packs of them, and a chunk of rows.
template <class F, int V>
__global__ void __launch_bounds__(kThreads)
    rows_pass(F f, int64_t rows, int64_t channels, int64_t chunk, Wide<typename F::Element>* partial) {
    using W = Wide<typename F::Element>;
    const int64_t c = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * V;
    W sums[F::kSums + 1][V] = {};
    if (c < channels) {
        typename F::Param params[V];
#pragma unroll
        for (int v = 0; v < V; ++v) params[v] = f.param(c + v);
        const int64_t first = static_cast<int64_t>(blockIdx.y) * chunk, last = min(first + chunk, rows);
        const auto at = [&](int64_t r) { return r * channels + c; };
        pass_places<F, V>(f, first + threadIdx.y, last, blockDim.y, at, params, 1, sums);
    }
    if constexpr (F::kSums > 0) {
        __shared__ W shared[kThreads * V];
        const int width = blockDim.x * V;
#pragma unroll
        for (int k = 0; k < F::kSums; ++k) {
#pragma unroll
            for (int v = 0; v < V; ++v) shared[threadIdx.y * width + threadIdx.x * V + v] = sums[k][v];
            __syncthreads();
            for (int half = blockDim.y / 2; half > 0; half /= 2) {
                if (threadIdx.y < half)
#pragma unroll
                    for (int v = 0; v < V; ++v) {
                        const int at = threadIdx.y * width + threadIdx.x * V + v;
                        shared[at] += shared[at + half * width];
                    }
                __syncthreads();
            }
            if (threadIdx.y == 0 && c < channels)
#pragma unroll
                for (int v = 0; v < V; ++v)
                    partial[(static_cast<int64_t>(blockIdx.y) * F::kSums + k) * channels + c + v] = shared[threadIdx.x * V + v];
            __syncthreads();
        }
    }
}

// Planes: a block has one channel and a chunk of its packs, counted over all samples.
template <class F, int V>
__global__ void __launch_bounds__(kThreads)
    planes_pass(F f, int64_t channels, uint32_t inner_packs, int64_t packs, int64_t chunk, Wide<typename F::Element>* partial) {
    using W = Wide<typename F::Element>;
    const int64_t c = blockIdx.x;
    const typename F::Param param = f.param(c);
    W sums[F::kSums + 1][V] = {};
    const int64_t first = static_cast<int64_t>(blockIdx.y) * chunk, last = min(first + chunk, packs);
    const auto at = [&](int64_t j) {
        const uint32_t n = static_cast<uint32_t>(j) / inner_packs, s = static_cast<uint32_t>(j) % inner_packs;
        return ((static_cast<int64_t>(n) * channels + c) * inner_packs + s) * V;
    };
    pass_places<F, V>(f, first + threadIdx.x, last, blockDim.x, at, &param, 0, sums);
    if constexpr (F::kSums > 0) {
#pragma unroll
        for (int k = 0; k < F::kSums; ++k) {
            W sum = 0;
#pragma unroll
            for (int v = 0; v < V; ++v) sum += sums[k][v];
            sum = block_sum(sum);
            if (threadIdx.x == 0) partial[(static_cast<int64_t>(blockIdx.y) * F::kSums + k) * channels + c] = sum;
        }
    }
}

constexpr int kFinishChannels = 32, kFinishRows = 32;

template <class F>
__global__ void finish_sums(F f, const Wide<typename F::Element>* partial, int64_t channels, int64_t chunks) {
    __shared__ double shared[F::kSums][kFinishRows][kFinishChannels];
    const int64_t c = static_cast<int64_t>(blockIdx.x) * kFinishChannels + threadIdx.x;
#pragma unroll
    for (int k = 0; k < F::kSums; ++k) {
        double sum = 0;
        if (c < channels)
#pragma unroll 4
            for (int64_t j = threadIdx.y; j < chunks; j += kFinishRows)
                sum += static_cast<double>(partial[(j * F::kSums + k) * channels + c]);
        shared[k][threadIdx.y][threadIdx.x] = sum;
    }
    __syncthreads();
    if (threadIdx.y != 0 || c >= channels) return;
    double sums[F::kSums];
#pragma unroll
    for (int k = 0; k < F::kSums; ++k) {
        sums[k] = 0;
        for (int y = 0; y < kFinishRows; ++y) sums[k] += shared[k][y][threadIdx.x];
    }
    f.finish(c, sums);
}

inline void expect_numbered(const ChannelView& view, int pack) {
    if (view.inner == 1 || view.per_channel() / pack <= kMostNumbered) return;
    throw TooLarge(fmt::format("a tensor of {} x {} x {} has {} elements in a channel, and kernels number up to {}, {} at a time",
                               view.outer, view.channels, view.inner, view.per_channel(), kMostNumbered, pack));
}

inline bool aligned_to_pack(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) % 16 == 0; }

template <class F, int V>
void start_with(const Device& device, const ChannelPlan& plan, const F& f, Wide<typename F::Element>* partial) {
    const ChannelView& view = plan.view;
    if (view.inner == 1) {
        const int across = threads_across(view.channels, V);
        const dim3 block(across, kThreads / across);
        const dim3 grid(static_cast<unsigned>(ceil_div(view.channels, static_cast<int64_t>(across) * V)),
                        static_cast<unsigned>(plan.chunks));
        launch(device, rows_pass<F, V>, grid, block, f, view.outer, view.channels, plan.chunk, partial);
    } else {
        const int64_t packs = view.per_channel() / V;
        expect_numbered(view, V);
        launch(device, planes_pass<F, V>, dim3(static_cast<unsigned>(view.channels), static_cast<unsigned>(plan.chunks)), kThreads, f,
               view.channels, static_cast<uint32_t>(view.inner / V), packs, ceil_div(packs, plan.chunks), partial);
    }
}

// Whether the pass can take several elements at a time.
template <class F>
bool in_packs(const ChannelView& view, const F& f) {
    bool packs = (view.inner == 1 ? view.channels : view.inner) % kFullPack<typename F::Element> == 0;
    for (int k = 0; k < F::kIn; ++k) packs = packs && aligned_to_pack(f.in[k]);
    if constexpr (F::kWrites) packs = packs && aligned_to_pack(f.out);
    return packs;
}

}  // namespace channel_pass_detail

// Starts the pass; `workspace` has plan.workspace_bytes(F::kSums) bytes.
template <class F>
void start_channel_pass(const Device& device, const ChannelPlan& plan, const F& f, void* workspace) {
    using namespace channel_pass_detail;
    auto* const partial = static_cast<Wide<typename F::Element>*>(workspace);
    const ChannelView& view = plan.view;
    if (view.channels == 0) return;
    if (in_packs(view, f))
        start_with<F, kFullPack<typename F::Element>>(device, plan, f, partial);
    else
        start_with<F, 1>(device, plan, f, partial);
    if constexpr (F::kSums > 0)
        launch(device, finish_sums<F>, dim3(static_cast<unsigned>(ceil_div(view.channels, kFinishChannels))),
               dim3(kFinishChannels, kFinishRows), f, partial, view.channels, plan.chunks);
}

// A kernel that does so. TooLarge, as for start_channel_pass, when the elements of a channel cannot be numbered.
template <class F>
std::unique_ptr<Kernel> pass_kernel(Device& device, const ChannelPlan& plan, const F& f, void* workspace) {
    using namespace channel_pass_detail;
    expect_numbered(plan.view, in_packs(plan.view, f) ? kFullPack<typename F::Element> : 1);
    return make_kernel([&device, plan, f, workspace](const StepContext&) { start_channel_pass(device, plan, f, workspace); });
}

}  // namespace convoy::cuda
