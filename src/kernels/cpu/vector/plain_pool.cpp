// Pooling in the plain layout, where a channel's pixels lie side by side: maxima of a whole row of windows at once, their gradients scattered
// plane by plane, and averages of whole planes.
#include <cstddef>

#include "kernels/cpu/vector/families.h"
#include "kernels/cpu/vector/vec.h"

namespace convoy::cpu::vec::CONVOY_ISA {

namespace {

// Outputs [begin, end) along a dim for which element k of the window lies in the input.
struct Covered {
    int64_t begin, end;
    CONVOY_INLINE Covered(const PlainMaxArgs& a, int d, int64_t k) {
        const int64_t shift = a.pad[d] - k * a.dilation[d];
        begin = first_at(shift, a.stride[d], a.out[d]);
        end = first_at(shift + a.in[d], a.stride[d], a.out[d]);
    }
    // The first output o of `out` with o*stride >= start.
    static CONVOY_INLINE int64_t first_at(int64_t start, int64_t stride, int64_t out) {
        return start <= 0 ? 0 : least((start + stride - 1) / stride, out);
    }
};

constexpr int64_t kPiece = 64;  // outputs of a row that are computed together
constexpr int64_t kVector = 16;

// Room for a vector past the end.
struct Best {
    alignas(64) float value[kPiece + kVector];
    alignas(64) int32_t at[kPiece + kVector];  // -1: nothing seen yet
};

// Element `tap` of the windows of outputs [begin, end); x is where output `begin` finds it, with `available` elements of memory from there on.
// kStride is the stride when there are vectors for it, else 0. With `open` the row ends at `end`, and what is computed past it is read by nobody.
template <int kStride>
CONVOY_INLINE void take(Best& best, const float* x, int64_t available, int64_t stride, int32_t tap, int64_t begin, int64_t end, bool open) {
    int64_t o = begin;
    if constexpr (kStride > 0) {
        for (; o < end && (open || o + kVector <= end) && (o - begin + kVector) * kStride <= available; o += kVector) {
            const float* const from = x + (o - begin) * kStride;
            auto value = load<kVector>(from);
            if constexpr (kStride == 2) value = even_elements(value, load<kVector>(from + kVector));
            const auto old = load<kVector>(best.value + o);
            const auto at = load_where<kVector>(best.at + o);
            const auto none = at == broadcast_int<kVector>(-1);
            // What is larger is taken, and the first NaN, which stays.
            const auto keep = either(value <= old, is_nan(old));
            const auto taken = broadcast_int<kVector>(tap);
            store(best.value + o, select(none, value, select(keep, old, value)));
            store_where(best.at + o, select(none, taken, select(keep, at, taken)));
        }
    }
    for (; o < end; ++o) {
        const float value = x[(o - begin) * stride], old = best.value[o];
        if (best.at[o] >= 0 && (value <= old || old != old)) continue;
        best.value[o] = value;
        best.at[o] = tap;
    }
}

template <class Where, int kStride>
void max_pool_rows(const PlainMaxArgs& a, int64_t begin, int64_t end) {
    Where* const where = static_cast<Where*>(a.new_where);
    for (int64_t r = begin; r < end; ++r) {
        const int64_t o1 = r % a.out[1], o0 = r / a.out[1] % a.out[0], plane = r / (a.out[0] * a.out[1]);
        const float* const xs = a.x + plane * a.in[0] * a.in[1] * a.in[2];
        for (int64_t first = 0; first < a.out[2]; first += kPiece) {
            const int64_t count = least(kPiece, a.out[2] - first);
            Best best;
            for (int64_t o = 0; o < count; o += kVector) {
                store(best.value + o, broadcast<kVector>(-__builtin_inff()));
                store_where(best.at + o, broadcast_int<kVector>(-1));
            }
            for (int64_t k0 = 0; k0 < a.kernel[0]; ++k0) {
                const int64_t i0 = o0 * a.stride[0] + k0 * a.dilation[0] - a.pad[0];
                if (i0 < 0 || i0 >= a.in[0]) continue;
                for (int64_t k1 = 0; k1 < a.kernel[1]; ++k1) {
                    const int64_t i1 = o1 * a.stride[1] + k1 * a.dilation[1] - a.pad[1];
                    if (i1 < 0 || i1 >= a.in[1]) continue;
                    const float* const line = xs + (i0 * a.in[1] + i1) * a.in[2];
                    for (int64_t k2 = 0; k2 < a.kernel[2]; ++k2) {
                        const Covered covered(a, 2, k2);
                        const int64_t from = covered.begin > first ? covered.begin - first : 0, to = least(covered.end - first, count);
                        if (from >= to) continue;
                        const int64_t i2 = (first + from) * a.stride[2] + k2 * a.dilation[2] - a.pad[2];
                        const auto tap = static_cast<int32_t>((k0 * a.kernel[1] + k1) * a.kernel[2] + k2);
                        take<kStride>(best, line + i2, a.x_elements - (line - a.x) - i2, a.stride[2], tap, from, to, to == count);
                    }
                }
            }
            const int64_t at = r * a.out[2] + first;
            alignas(64) Where found[kPiece];
            for (int64_t o = 0; o < count; o += kVector) {
                const auto position = load_where<kVector>(best.at + o);
                const auto none = position == broadcast_int<kVector>(-1);
                store_where(found + o, select(none, broadcast_int<kVector>(0), position));
            }
            __builtin_memcpy(a.y + at, best.value, static_cast<size_t>(count) * sizeof(float));
            __builtin_memcpy(where + at, found, static_cast<size_t>(count) * sizeof(Where));
        }
    }
}

template <class Where>
void plain_max_pool(const PlainMaxArgs& a, int64_t begin, int64_t end) {
    switch (a.stride[2]) {
        case 1: return max_pool_rows<Where, 1>(a, begin, end);
        case 2: return max_pool_rows<Where, 2>(a, begin, end);
        default: return max_pool_rows<Where, 0>(a, begin, end);
    }
}

// Requires that every window's maximum lies in the input.
template <class Where, bool kMasked>
void scatter_max_grad(const PlainMaxArgs& a, int64_t begin, int64_t end) {
    const Where* const where = static_cast<const Where*>(a.where);
    const int64_t in_count = a.in[0] * a.in[1] * a.in[2], out_count = a.out[0] * a.out[1] * a.out[2];
    for (int64_t plane = begin; plane < end; ++plane) {
        float* const dx = a.dx + plane * in_count;
        for (int64_t i = 0; i < in_count; ++i) dx[i] = 0;
        int64_t o = plane * out_count;
        for (int64_t o0 = 0; o0 < a.out[0]; ++o0)
            for (int64_t o1 = 0; o1 < a.out[1]; ++o1) {
                const int64_t line = ((o0 * a.stride[0] - a.pad[0]) * a.in[1] + o1 * a.stride[1] - a.pad[1]) * a.in[2] - a.pad[2];
                for (int64_t o2 = 0; o2 < a.out[2]; ++o2, ++o)
                    dx[line + o2 * a.stride[2] + a.tap_offsets[where[o]]] += kMasked && a.mask[o] <= 0 ? 0 : a.dy[o];
            }
    }
}

template <class Where>
void plain_max_pool_grad(const PlainMaxArgs& a, int64_t begin, int64_t end) {
    a.mask ? scatter_max_grad<Where, true>(a, begin, end) : scatter_max_grad<Where, false>(a, begin, end);
}

void plane_means(const float* x, int64_t elements, float* y, int64_t begin, int64_t end) {
    const double share = 1.0 / static_cast<double>(elements);
    for (int64_t plane = begin; plane < end; ++plane) {
        const float* const xs = x + plane * elements;
        double sum = 0;
        // Short float sums, added up in double.
        constexpr int64_t kRun = 1024, kAccumulators = 16;
        for (int64_t first = 0; first < elements; first += kRun) {
            const int64_t last = least(first + kRun, elements);
            alignas(64) float part[kAccumulators] = {};
            int64_t i = first;
            for (; i + kAccumulators <= last; i += kAccumulators) accumulate(part, load<kAccumulators>(xs + i));
            for (int64_t k = 0; i < last; ++i, ++k) part[k] += xs[i];
            for (const float p : part) sum += static_cast<double>(p);
        }
        y[plane] = static_cast<float>(sum * share);
    }
}

void plane_fills(const float* y, int64_t elements, float* x, int64_t begin, int64_t end) {
    const float share = 1.0f / static_cast<float>(elements);
    for (int64_t plane = begin; plane < end; ++plane) {
        const float value = y[plane] * share;
        for (int64_t i = plane * elements; i < (plane + 1) * elements; ++i) x[i] = value;
    }
}

}  // namespace

void enter_plain_pool(VectorKernels& table) {
    table.plain_max_pool_u8 = plain_max_pool<uint8_t>;
    table.plain_max_pool_i32 = plain_max_pool<int32_t>;
    table.plain_max_pool_grad_u8 = plain_max_pool_grad<uint8_t>;
    table.plain_max_pool_grad_i32 = plain_max_pool_grad<int32_t>;
    table.plane_means = plane_means;
    table.plane_fills = plane_fills;
}

}  // namespace convoy::cpu::vec::CONVOY_ISA
