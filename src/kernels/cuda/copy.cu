#include "kernels/cuda/copy.h"

#include "kernels/cuda/launch.cuh"

namespace convoy::cuda {

namespace {

template <class From, class To>
__device__ __forceinline__ To converted(From value) {
    if constexpr (std::is_same_v<From, To>)
        return value;
    else
        return narrow<To>(static_cast<Wide<To>>(widen(value)));
}

// Index arithmetic in 32 bits where it suffices: divisions are most of the work.
template <class From, class To, class Index>
__global__ void strided_copy(CopyShape shape, const From* src, To* dst) {
    const Index count = static_cast<Index>(shape.count), step = static_cast<Index>(gridDim.x) * blockDim.x;
    for (Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
        Index rest = i;
        int64_t from = 0, to = 0;
        for (int d = shape.rank - 1; d > 0; --d) {
            const Index size = static_cast<Index>(shape.size[d]), at = rest % size;
            rest /= size;
            from += at * shape.src[d];
            to += at * shape.dst[d];
        }
        dst[to + rest * shape.dst[0]] = converted<From, To>(src[from + rest * shape.src[0]]);
    }
}

template <class From, class To>
__global__ void flat_convert(const From* src, To* dst, int64_t packs, int64_t count) {
    constexpr int V = 4;
    const int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x, step = static_cast<int64_t>(gridDim.x) * blockDim.x;
    for (int64_t i = first; i < packs; i += step) {
        const auto in = load<V>(src + i * V);
        Pack<To, V> out;
#pragma unroll
        for (int v = 0; v < V; ++v) out.at[v] = converted<From, To>(in.at[v]);
        store<V>(dst + i * V, out);
    }
    for (int64_t i = packs * V + first; i < count; i += step) dst[i] = converted<From, To>(src[i]);
}

// A plain transposition of matrices, tile by tile through shared memory: both sides are read and written along their rows.
template <class From, class To>
__global__ void transpose(const From* src, To* dst, int64_t rows, int64_t columns) {
    constexpr int kTile = 32;
    __shared__ To tile[kTile][kTile + 1];
    const int64_t matrix = static_cast<int64_t>(blockIdx.z) * rows * columns;
    const int64_t row0 = static_cast<int64_t>(blockIdx.y) * kTile, column0 = static_cast<int64_t>(blockIdx.x) * kTile;
    for (int y = threadIdx.y; y < kTile; y += blockDim.y)
        if (row0 + y < rows && column0 + threadIdx.x < columns)
            tile[y][threadIdx.x] = converted<From, To>(src[matrix + (row0 + y) * columns + column0 + threadIdx.x]);
    __syncthreads();
    for (int y = threadIdx.y; y < kTile; y += blockDim.y)
        if (column0 + y < columns && row0 + threadIdx.x < rows)
            dst[matrix + (column0 + y) * rows + row0 + threadIdx.x] = tile[threadIdx.x][y];
}

template <class T>
__global__ void fill(T* data, int64_t count, T value) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) data[i] = value;
}

// A thread writes a pack of channels.
template <class E, int V>
__global__ void widen_channels(const E* src, E* dst, int64_t positions, int from, int to) {
    const int packs = to / V;
    const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x, count = positions * packs;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
        const int64_t position = i / packs;
        const int first = static_cast<int>(i - position * packs) * V;
        Pack<E, V> out;
#pragma unroll
        for (int v = 0; v < V; ++v) out.at[v] = first + v < from ? src[position * from + first + v] : E{0};
        store<V>(dst + i * V, out);
    }
}

// A warp has 32 elements; the warps of a block share the parts.
template <class T>
__global__ void __launch_bounds__(kThreads) sum_of_parts(const T* parts, int count, T* dst, int64_t each) {
    constexpr int kWarps = kThreads / 32;
    __shared__ Wide<T> sums[kWarps][32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int64_t first = int64_t{32} * blockIdx.x; first < each; first += int64_t{32} * gridDim.x) {
        const int64_t i = first + lane;
        Wide<T> sum = 0;
        if (i < each)
            for (int p = warp; p < count; p += kWarps) sum += widen(parts[p * each + i]);
        sums[warp][lane] = sum;
        __syncthreads();
        if (warp == 0 && i < each) {
            for (int w = 1; w < kWarps; ++w) sum += sums[w][lane];
            dst[i] = narrow<T>(sum);
        }
        __syncthreads();
    }
}

// Whether the copy is [batch] matrices of rows x columns, transposed: the dims in the order of dst are (batch,) columns, rows.
struct Transposing {
    bool holds = false;
    int64_t batch = 1, rows = 1, columns = 1;
};
Transposing transposing(const CopyShape& s) {
    if (s.rank != 2 && s.rank != 3) return {};
    const int c = s.rank - 2, r = s.rank - 1;
    const int64_t rows = s.size[r], columns = s.size[c];
    bool holds = s.dst[r] == 1 && s.dst[c] == rows && s.src[c] == 1 && s.src[r] == columns;
    if (s.rank == 3) holds = holds && s.src[0] == rows * columns && s.dst[0] == rows * columns;
    const int64_t batch = s.rank == 3 ? s.size[0] : 1;
    constexpr int64_t kMost = 65535;
    // A few rows or columns would leave most of a tile empty.
    holds = holds && rows >= 8 && columns >= 8 && batch <= kMost && ceil_div(rows, 32) <= kMost;
    return {holds, batch, rows, columns};
}

template <class From, class To>
void start_typed(const Device& device, const CopyShape& shape, const From* src, To* dst) {
    const bool flat = shape.rank == 1 && shape.src[0] == 1 && shape.dst[0] == 1;
    if constexpr (!std::is_same_v<From, To>) {
        const auto aligned = [](const void* p, size_t bytes) { return reinterpret_cast<uintptr_t>(p) % bytes == 0; };
        if (flat && aligned(src, 4 * sizeof(From)) && aligned(dst, 4 * sizeof(To)))
            return launch(device, flat_convert<From, To>, grid_for(shape.count / 4), kThreads, src, dst, shape.count / 4, shape.count);
    }
    if (const Transposing t = transposing(shape); t.holds) {
        const dim3 grid(static_cast<unsigned>(ceil_div(t.columns, 32)), static_cast<unsigned>(ceil_div(t.rows, 32)),
                        static_cast<unsigned>(t.batch));
        return launch(device, transpose<From, To>, grid, dim3(32, 8), src, dst, t.rows, t.columns);
    }
    if (shape.count < (int64_t{1} << 31))
        launch(device, strided_copy<From, To, uint32_t>, grid_for(shape.count), kThreads, shape, src, dst);
    else
        launch(device, strided_copy<From, To, int64_t>, grid_for(shape.count), kThreads, shape, src, dst);
}

// The same copy in elements of 16 bytes, where everything allows it.
bool widen_elements(CopyShape& shape, int64_t size, const void* src, const void* dst) {
    const int64_t each = 16 / size;
    const int last = shape.rank - 1;
    bool fits = shape.src[last] == 1 && shape.dst[last] == 1 && shape.size[last] % each == 0 &&
                reinterpret_cast<uintptr_t>(src) % 16 == 0 && reinterpret_cast<uintptr_t>(dst) % 16 == 0;
    for (int d = 0; d < last; ++d) fits = fits && shape.src[d] % each == 0 && shape.dst[d] % each == 0;
    if (!fits) return false;
    shape.size[last] /= each;
    shape.count /= each;
    for (int d = 0; d < last; ++d) {
        shape.src[d] /= each;
        shape.dst[d] /= each;
    }
    return true;
}

template <class E>
void start_bits(const Device& device, const CopyShape& shape, const void* src, void* dst) {
    start_typed(device, shape, static_cast<const E*>(src), static_cast<E*>(dst));
}

}  // namespace

void start_copy(const Device& device, const Shape& shape, const CopyEnd& src, const CopyEnd& dst) {
    if (numel(shape) == 0) return;
    CopyShape copy = copy_shape(shape, src.strides, dst.strides);
    if (src.dtype != dst.dtype) {
        with_floating(src.dtype, [&](auto from) {
            with_floating(dst.dtype, [&](auto to) {
                start_typed(device, copy, static_cast<const decltype(from)*>(src.data), static_cast<decltype(to)*>(dst.data));
            });
        });
        return;
    }
    if (widen_elements(copy, size_of(src.dtype), src.data, dst.data)) return start_bits<uint4>(device, copy, src.data, dst.data);
    switch (size_of(src.dtype)) {
        case 1: return start_bits<uint8_t>(device, copy, src.data, dst.data);
        case 2: return start_bits<uint16_t>(device, copy, src.data, dst.data);
        case 4: return start_bits<uint32_t>(device, copy, src.data, dst.data);
        default: return start_bits<uint64_t>(device, copy, src.data, dst.data);
    }
}

void start_copy(const Device& device, const Operand& src, const Operand& dst) {
    const Shape& shape = src.desc.shape;
    CONVOY_CHECK(shape == dst.desc.shape, "a copy of {} to {}", to_string(shape), to_string(dst.desc.shape));
    start_copy(device, shape, {src.data, src.desc.dtype, strides_of(shape, src.layout)},
               {dst.data, dst.desc.dtype, strides_of(shape, dst.layout)});
}

void start_widen(const Device& device, const Operand& src, const Operand& dst) {
    const int from = static_cast<int>(src.desc.shape[1]), to = static_cast<int>(dst.desc.shape[1]);
    const int64_t positions = numel(src.desc.shape) / std::max(from, 1);
    const auto typed = [&](auto zero, auto width) {
        using E = decltype(zero);
        constexpr int V = decltype(width)::value;
        CONVOY_CHECK(to % V == 0, "{} channels are widened to {}", from, to);
        launch(device, widen_channels<E, V>, grid_for(positions * to / V), kThreads, static_cast<const E*>(src.data),
               static_cast<E*>(dst.data), positions, from, to);
    };
    if (size_of(src.desc.dtype) == 2) return typed(uint16_t{}, std::integral_constant<int, 8>{});
    typed(uint32_t{}, std::integral_constant<int, 4>{});
}

void start_sum_of_parts(const Device& device, const void* parts, int count, const Operand& dst) {
    const int64_t each = numel(dst.desc.shape);
    with_floating(dst.desc.dtype, [&](auto zero) {
        using T = decltype(zero);
        launch(device, sum_of_parts<T>, grid_for(each * (kThreads / 32)), kThreads, static_cast<const T*>(parts), count,
               static_cast<T*>(dst.data), each);
    });
}

void start_fill(const Device& device, void* data, DType dtype, int64_t count, double value) {
    if (count == 0) return;
    const auto typed = [&](auto* to, auto v) { launch(device, fill<decltype(v)>, grid_for(count), kThreads, to, count, v); };
    switch (dtype) {
        case DType::f64: return typed(static_cast<double*>(data), value);
        case DType::tf32:
        case DType::f32: return typed(static_cast<float*>(data), static_cast<float>(value));
        case DType::bf16: return typed(static_cast<bf16*>(data), __float2bfloat16(static_cast<float>(value)));
        case DType::i64: return typed(static_cast<int64_t*>(data), static_cast<int64_t>(value));
        case DType::i32: return typed(static_cast<int32_t*>(data), static_cast<int32_t>(value));
        case DType::u8: return typed(static_cast<uint8_t*>(data), static_cast<uint8_t>(value));
        case DType::f16: CONVOY_CHECK(false, "the cuda backend does not fill f16");
    }
}

}  // namespace convoy::cuda
