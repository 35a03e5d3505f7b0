#include "kernels/cuda/tiled_grad_weight.h"

#include <cuda_pipeline.h>

#include "kernels/cuda/copy.h"
#include "kernels/cuda/launch.cuh"

namespace convoy::cuda {

extern __shared__ float4 dynamic_shared[];  // as much as a launch asks for

namespace {

constexpr int kFilters = 8;  // of a thread
constexpr int kMostThreads = 256;
constexpr int64_t kShared = 72 << 10;  // three blocks on a multiprocessor
constexpr int kBlocks = 132 * 3;

// Rows of the window that a thread has: as many sums as its registers hold.
__host__ __device__ constexpr int rows_of_thread(int width) { return width == 3 ? 3 : 1; }

// A line of inputs, read four at a time and four ahead. An odd number of fours spreads lines over the banks.
__host__ __device__ constexpr int pitch_of(int columns) { return columns + 4 + ((columns / 4 + 1) % 2 == 0 ? 4 : 0); }

// Threads that differ in their weights.
int units_of(const TiledGradWeight& t) {
    return t.channels * t.window.kernel[0] * (t.window.kernel[1] / rows_of_thread(t.kernel_width)) * (t.filters / kFilters);
}
// A tile of inputs and of the outputs' gradient; at the end the sums of a group.
int64_t shared_bytes(const TiledGradWeight& t) {
    const int inputs = t.channels * t.window.kernel[0] * (t.lines + t.window.kernel[1] - 1) * pitch_of(t.columns);
    const int outputs = t.filters * t.lines * t.columns;
    const int sums = units_of(t) * kFilters * rows_of_thread(t.kernel_width) * t.kernel_width;
    return std::max(inputs + outputs, sums) * static_cast<int64_t>(sizeof(float));
}

// to[0, pitch) = from[first + i], zeros where that lies outside [0, size); by a warp, without waiting.
__device__ __forceinline__ void fetch_line(float* to, int pitch, const float* from, int64_t stride, int first, int size) {
    for (int i = threadIdx.x % 32; i < pitch; i += 32) {
        const int at = first + i;
        const bool inside = at >= 0 && at < size;
        __pipeline_memcpy_async(to + i, from + (inside ? at * stride : 0), sizeof(float), inside ? 0 : sizeof(float));
    }
}

template <int kWidth>
__global__ void __launch_bounds__(kMostThreads, 2) grad_weight(TiledGradWeight t, const float* xs, const float* dys, float* parts) {
    constexpr int kRows = rows_of_thread(kWidth);
    float* const inputs = reinterpret_cast<float*>(dynamic_shared);
    const int depth = t.window.kernel[0], height = t.window.kernel[1], input_lines = t.lines + height - 1, pitch = pitch_of(t.columns);
    float* const outputs = inputs + t.channels * depth * input_lines * pitch;

    // Neighbours have the same filters, so what they read of the outputs' gradient is one access.
    const int rows = height / kRows, places = t.channels * depth * rows, units = places * (t.filters / kFilters);
    const int unit = threadIdx.x % units, group = threadIdx.x / units;
    const int filter = unit / places * kFilters, place = unit % places;
    const int k1 = place % rows * kRows, k0 = place / rows % depth, channel = place / rows / depth;

    const int channel_tiles = static_cast<int>((t.x.c + t.channels - 1) / t.channels);
    const int first_channel = static_cast<int>(blockIdx.y) % channel_tiles * t.channels;
    const int first_filter = static_cast<int>(blockIdx.y) / channel_tiles * t.filters;
    const int warp = threadIdx.x / 32, warps = blockDim.x / 32;

    float sums[kFilters][kRows][kWidth] = {};
    const int across = static_cast<int>((t.y.size[2] + t.columns - 1) / t.columns),
              down = static_cast<int>((t.y.size[1] + t.lines - 1) / t.lines);
    const int64_t tiles = t.y.n * t.y.size[0] * down * across;
    for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const int column = static_cast<int>(tile % across) * t.columns, line = static_cast<int>(tile / across % down) * t.lines;
        const int64_t plane = tile / across / down;
        const int o0 = static_cast<int>(plane % t.y.size[0]);
        const int64_t n = plane / t.y.size[0];
        __syncthreads();  // the last tile has been read
        for (int c = 0; c < t.channels; ++c)
            for (int d = 0; d < depth; ++d) {
                const int i0 = o0 - t.window.pad[0] + d;
                const bool plane_inside = first_channel + c < t.x.c && i0 >= 0 && i0 < t.x.size[0];
                const float* const from = xs + n * t.x.stride_n + (first_channel + c) * t.x.stride_c + i0 * t.x.stride[0];
                float* const to = inputs + (c * depth + d) * input_lines * pitch;
                for (int l = warp; l < input_lines; l += warps) {
                    const int i1 = line - t.window.pad[1] + l;
                    const bool inside = plane_inside && i1 >= 0 && i1 < t.x.size[1];
                    fetch_line(to + l * pitch, pitch, inside ? from + i1 * t.x.stride[1] : xs, t.x.stride[2], column - t.window.pad[2],
                               inside ? static_cast<int>(t.x.size[2]) : 0);
                }
            }
        for (int f = 0; f < t.filters; ++f) {
            const float* const from = dys + n * t.y.stride_n + (first_filter + f) * t.y.stride_c + o0 * t.y.stride[0];
            for (int l = warp; l < t.lines; l += warps) {
                const bool inside = first_filter + f < t.y.c && line + l < t.y.size[1];
                fetch_line(outputs + (f * t.lines + l) * t.columns, t.columns, inside ? from + (line + l) * t.y.stride[1] : dys,
                           t.y.stride[2], column, inside ? static_cast<int>(t.y.size[2]) : 0);
            }
        }
        __pipeline_commit();
        __pipeline_wait_prior(0);
        __syncthreads();
        if (group >= t.groups) continue;
        for (int l = group; l < t.lines; l += t.groups) {
            const float* const in = inputs + ((channel * depth + k0) * input_lines + l + k1) * pitch;
            const float* const out = outputs + (filter * t.lines + l) * t.columns;
            float near[kRows][8];
#pragma unroll
            for (int r = 0; r < kRows; ++r) {
                const auto four = load<4>(in + r * pitch);
#pragma unroll
                for (int j = 0; j < 4; ++j) near[r][4 + j] = four.at[j];
            }
            for (int i = 0; i < t.columns; i += 4) {
#pragma unroll
                for (int r = 0; r < kRows; ++r) {
                    const auto four = load<4>(in + r * pitch + i + 4);
#pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        near[r][j] = near[r][4 + j];
                        near[r][4 + j] = four.at[j];
                    }
                }
#pragma unroll
                for (int f = 0; f < kFilters; ++f) {
                    const auto dy = load<4>(out + f * t.lines * t.columns + i);
#pragma unroll
                    for (int r = 0; r < kRows; ++r)
#pragma unroll
                        for (int k = 0; k < kWidth; ++k)
#pragma unroll
                            for (int j = 0; j < 4; ++j) sums[f][r][k] += dy.at[j] * near[r][j + k];
                }
            }
        }
    }

    // Groups add their sums one after the other, in the first one's place.
    constexpr int kSums = kFilters * kRows * kWidth;
    float* const mine = inputs + unit;
    for (int turn = 0; turn < t.groups; ++turn) {
        __syncthreads();
        if (group != turn) continue;
#pragma unroll
        for (int s = 0; s < kSums; ++s) {
            const float sum = sums[s / (kRows * kWidth)][s / kWidth % kRows][s % kWidth];
            mine[s * units] = turn == 0 ? sum : mine[s * units] + sum;
        }
    }
    __syncthreads();
    if (group != 0 || first_channel + channel >= t.w.c) return;
    float* const part = parts + blockIdx.x * (t.w.n * t.w.c * depth * height * kWidth);
    for (int f = 0; f < kFilters && first_filter + filter + f < t.w.n; ++f)
        for (int r = 0; r < kRows; ++r)
            for (int k = 0; k < kWidth; ++k)
                part[(first_filter + filter + f) * t.w.stride_n + (first_channel + channel) * t.w.stride_c + k0 * t.w.stride[0] +
                     (k1 + r) * t.w.stride[1] + k * t.w.stride[2]] = mine[((f * kRows + r) * kWidth + k) * units];
}

int64_t tiles_of_weights(const TiledGradWeight& t) { return ceil_div(t.x.c, t.channels) * ceil_div(t.y.c, t.filters); }

}  // namespace

std::optional<TiledGradWeight> tiled_grad_weight(const Window& window, const Operand& x, const Operand& w, const Operand& y) {
    for (const Operand* o : {&x, &w, &y})
        if (o->desc.dtype != DType::f32 || numel(o->desc.shape) == 0) return std::nullopt;
    if (x.desc.shape[1] != w.desc.shape[1]) return std::nullopt;  // groups
    for (int d = 0; d < window.rank(); ++d)
        if (window.stride[d] != 1 || window.dilation[d] != 1) return std::nullopt;
    TiledGradWeight t{volume_of(x.desc.shape, x.layout), volume_of(w.desc.shape, w.layout), volume_of(y.desc.shape, y.layout),
                      window3_of(window)};
    const int depth = t.window.kernel[0], height = t.window.kernel[1];
    t.kernel_width = t.window.kernel[2];
    if ((t.kernel_width != 3 && t.kernel_width != 5) || height % rows_of_thread(t.kernel_width) != 0) return std::nullopt;
    t.filters = static_cast<int>(std::min<int64_t>(32, ceil_div(t.y.c, kFilters) * kFilters));
    t.channels = 1;
    const int each = units_of(t);
    if (each > kMostThreads) return std::nullopt;
    t.channels = static_cast<int>(std::min<int64_t>({t.x.c, 8, kMostThreads / each}));
    t.groups = kMostThreads / units_of(t);
    constexpr int kLines = 8, kColumns = 64;
    t.columns = static_cast<int>(std::min<int64_t>(kColumns, ceil_div(t.y.size[2], 4) * 4));
    t.groups = static_cast<int>(std::min<int64_t>(t.groups, t.y.size[1]));
    t.lines = static_cast<int>(ceil_div(std::min<int64_t>(kLines, t.y.size[1]), t.groups)) * t.groups;
    while (shared_bytes(t) > kShared && t.lines > t.groups) t.lines -= t.groups;
    while (shared_bytes(t) > kShared && t.columns > 8) t.columns = t.columns / 8 * 4;
    if (shared_bytes(t) > kShared || tiles_of_weights(t) > 65535) return std::nullopt;
    const int64_t tiles = t.y.n * t.y.size[0] * ceil_div(t.y.size[1], t.lines) * ceil_div(t.y.size[2], t.columns);
    t.splits = static_cast<int>(std::clamp<int64_t>(kBlocks / tiles_of_weights(t), 1, tiles));
    t.scratch_bytes = t.splits * t.w.n * t.w.c * depth * height * t.kernel_width * static_cast<int64_t>(sizeof(float));
    return t;
}

void start_tiled_grad_weight(const Device& device, const TiledGradWeight& conv, const Operand& x, const Operand& dy, const Operand& dw,
                             void* scratch) {
    const auto run = conv.kernel_width == 3 ? grad_weight<3> : grad_weight<5>;
    const auto bytes = static_cast<int>(shared_bytes(conv));
    check(cudaFuncSetAttribute(run, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes), "cudaFuncSetAttribute");
    const dim3 grid(static_cast<unsigned>(conv.splits), static_cast<unsigned>(tiles_of_weights(conv)));
    const dim3 block(static_cast<unsigned>(ceil_div(units_of(conv) * conv.groups, 32) * 32));
    launch_sharing(device.stream(), bytes, run, grid, block, conv, static_cast<const float*>(x.data), static_cast<const float*>(dy.data),
                   static_cast<float*>(scratch));
    start_sum_of_parts(device, scratch, conv.splits, dw);
}

}  // namespace convoy::cuda
