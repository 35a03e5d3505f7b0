#include "kernels/cuda/slices.h"

#include <cuda_fp16.h>

#include "kernels/cuda/channel_pass.cuh"
#include "kernels/cuda/copy.h"

namespace convoy::cuda {

namespace {

// The exponent of every channel's scale.
struct ScalePass {
    using Element = float;
    static constexpr int kIn = 1, kSums = 1;
    static constexpr bool kWrites = false;
    const float* in[1];
    float* out;
    int* exponents;

    struct Param {};
    __device__ Param param(int64_t) const { return {}; }
    __device__ float apply(const Param&, const float (&x)[1], float (&sums)[2]) const {
        sums[0] += x[0] * x[0];
        return 0;
    }
    __device__ void finish(int64_t c, const double (&sums)[1]) const {
        constexpr int kNorm = 7, kFar = 60;  // the squares of what is farther from 1 are no numbers of f32
        if (sums[0] == 0)
            exponents[c] = kFar;
        else if (!isfinite(sums[0]))
            exponents[c] = -kFar;
        else
            exponents[c] = kNorm - (ilogb(sqrt(sums[0])) + 1);
    }
};

constexpr int kPack = 8;

__device__ __forceinline__ float power_of_two(int exponent) { return __int_as_float((exponent + 127) << 23); }

// Of `slice` channels, in rows of `channels`. A thread has a pack of channels and every so many rows.
__global__ void __launch_bounds__(kThreads)
    halve(const float* from, int64_t rows, int channels, int slice, const int* exponents, __half* to) {
    for (int c = threadIdx.x * kPack; c < slice; c += blockDim.x * kPack) {
        const auto exponent = load<kPack / 2>(exponents + c), rest = load<kPack / 2>(exponents + c + kPack / 2);
        float scales[kPack];
#pragma unroll
        for (int v = 0; v < kPack; ++v) scales[v] = power_of_two(v < kPack / 2 ? exponent.at[v] : rest.at[v - kPack / 2]);
        const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.y;
        for (int64_t r = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y; r < rows; r += step) {
            const auto low = load<kPack / 2>(from + r * channels + c), high = load<kPack / 2>(from + r * channels + c + kPack / 2);
            Pack<__half, kPack> out;
#pragma unroll
            for (int v = 0; v < kPack; ++v) out.at[v] = __float2half_rn((v < kPack / 2 ? low.at[v] : high.at[v - kPack / 2]) * scales[v]);
            store<kPack>(to + r * slice + c, out);
        }
    }
}

// The sum over all parts.
__global__ void __launch_bounds__(kThreads)
    unscale(const __half* from, int parts, int64_t rows, int taps, int channels, int slice, const int* of_x, const int* of_y, float* to) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x, count = rows * channels;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
        const int64_t row = i / channels;
        const int c = static_cast<int>(i - row * channels);
        const __half* const product = from + (c / slice * rows + row) * slice + c % slice;
        float sum = 0;
        for (int p = 0; p < parts; ++p) sum += __half2float(product[p * count]);
        to[i] = scalbnf(sum, -(of_x[c] + of_y[row / taps]));
    }
}

ChannelPlan scale_plan(const Operand& o) { return plan_channels(channel_view(o.desc.shape, o.layout), DType::f32, true); }
int64_t channels_of(const Operand& o) { return o.desc.shape[1]; }
int64_t exponent_bytes(const Operand& o) { return channels_of(o) * static_cast<int64_t>(sizeof(int)); }
// Where the exponents of x, of y, and the partial sums lie.
int* exponents_x(const Slices& s) { return static_cast<int*>(s.scales); }
int* exponents_y(const Slices& s) { return exponents_x(s) + channels_of(s.x); }
void* partial_sums(const Slices& s) { return exponents_y(s) + channels_of(s.y); }

void start_finding_scales(const Device& device, const Operand& o, int* exponents, void* partial) {
    start_channel_pass(device, scale_plan(o), ScalePass{{static_cast<const float*>(o.data)}, nullptr, exponents}, partial);
}

// One of so many pieces of a dim.
struct Share {
    int index, count;
};
void start_halving(const Device& device, const Operand& from, Share part, Share slice, const int* exponents, void* to) {
    const int64_t channels = channels_of(from), rows = numel(from.desc.shape) / channels / part.count, width = channels / slice.count;
    const int64_t first = slice.index * width;
    const int across = threads_across(width, kPack);
    launch(device, halve, grid_for(rows * across), dim3(across, kThreads / across),
           static_cast<const float*>(from.data) + part.index * rows * channels + first, rows, static_cast<int>(channels),
           static_cast<int>(width), exponents + first, static_cast<__half*>(to));
}

}  // namespace

bool can_cut(const SliceProblem& problem, int count) {
    constexpr int64_t kLeast = 32;  // channels of a slice
    constexpr double kMuch = 1e11;
    if (problem.compute != DType::tf32 && problem.compute != DType::bf16) return false;
    if (problem.channels % kPack != 0 || problem.filters % kPack != 0) return false;
    return count == 1 ? problem.compute == DType::tf32 : problem.channels % (count * kLeast) == 0 && problem.work > kMuch;
}

int parts_of_batch(const Shape& x, int slices) {
    constexpr int64_t kMost = int64_t{512} << 20;
    const int64_t bytes = numel(x) / slices * size_of(DType::f16);
    int64_t parts = 1;
    while (parts < x[0] && (x[0] % parts != 0 || bytes / parts > kMost)) ++parts;
    return static_cast<int>(parts);
}

int64_t Slices::scales_bytes() const {
    return exponent_bytes(x) + exponent_bytes(y) + std::max(scale_plan(x).workspace_bytes(1), scale_plan(y).workspace_bytes(1));
}

void start_scaling(const Device& device, const Slices& s) {
    if (!s.halved()) return;
    start_finding_scales(device, s.x, exponents_x(s), partial_sums(s));
    start_finding_scales(device, s.y, exponents_y(s), partial_sums(s));
}

void start_cutting(const Device& device, const Slices& s, int index) {
    if (s.halved()) {
        const Share part{index / s.count, s.parts}, slice{index % s.count, s.count};
        start_halving(device, s.x, part, slice, exponents_x(s), s.x_piece);
        if (slice.index == 0) start_halving(device, s.y, part, {0, 1}, exponents_y(s), s.y_halves);
        return;
    }
    const int64_t channels = channels_of(s.x), rows = numel(s.x.desc.shape) / channels, slice = channels / s.count;
    const DType type = s.x.desc.dtype;
    start_copy(device, {rows, slice}, {static_cast<std::byte*>(s.x.data) + index * slice * size_of(type), type, {channels, 1}},
               {s.x_piece, type, {slice, 1}});
}

void start_joining(const Device& device, const Slices& s) {
    const int64_t channels = channels_of(s.w), rows = numel(s.w.desc.shape) / channels, slice = channels / s.count;
    if (s.halved())
        return launch(device, unscale, grid_for(rows * channels), kThreads, static_cast<const __half*>(s.products), s.parts, rows,
                      static_cast<int>(rows / s.w.desc.shape[0]), static_cast<int>(channels), static_cast<int>(slice), exponents_x(s),
                      exponents_y(s), static_cast<float*>(s.w.data));
    start_copy(device, {s.count, rows, slice}, {s.products, s.x.desc.dtype, {rows * slice, slice, 1}},
               {s.w.data, s.w.desc.dtype, {slice, channels, 1}});
}

}  // namespace convoy::cuda
