// Direct convolution in the blocked layout. A few neighbouring results of one or two blocks of channels stay in registers while all channels and taps
// of the source are added to them.
#include "kernels/cpu/vector/families.h"
#include "kernels/cpu/vector/vec.h"

namespace convoy::cpu::vec::CONVOY_ISA {

namespace {

// With 32 registers two blocks of 12 results leave room for what is multiplied; with 16, two of 4 do.
constexpr int kStrip = CONVOY_WIDTH == 16 ? 12 : 4;

template <int B, int S, int R>
void strip(const DirectArgs& a, int64_t first) {
    Vec<B> sum[R][S];
    for (int r = 0; r < R; ++r)
        for (int s = 0; s < S; ++s) sum[r][s] = broadcast<B>(0);
    const int64_t step = a.source_step;
    for (int64_t block = 0; block < a.blocks; ++block) {
        const float* const source = a.source + block * a.source_block + first * step;
        const float* const weights = a.weights + block * a.source_weights;
        for (int64_t t = 0; t < a.taps; ++t) {
            const float* const x = source + a.source_offset[t];
            const float* const w = weights + a.weight_offset[t];
#pragma GCC unroll 4
            for (int i = 0; i < B; ++i) {
                Vec<B> factor[R];
                for (int r = 0; r < R; ++r) factor[r] = load<B>(w + r * a.result_weights + i * B);
                for (int s = 0; s < S; ++s) {
                    const Vec<B> value = broadcast<B>(x[s * step + i]);
                    for (int r = 0; r < R; ++r) sum[r][s] = sum[r][s] + value * factor[r];
                }
            }
        }
    }
    for (int r = 0; r < R; ++r)
        for (int s = 0; s < S; ++s) store(a.result + r * a.result_block + (first + s) * a.result_step, sum[r][s]);
}

// Of S results or, where that is too many, of as many as there are.
template <int B, int R, int S>
CONVOY_INLINE void some(const DirectArgs& a, int64_t first, int64_t count) {
    if constexpr (S > 1)
        if (count < S) return some<B, R, S - 1>(a, first, count);
    strip<B, S, R>(a, first);
}

// In strips of about one length.
template <int B, int R>
void strips(const DirectArgs& a) {
    const int64_t number = (a.count + kStrip - 1) / kStrip;
    for (int64_t i = 0; i < number; ++i) {
        const int64_t first = a.count * i / number;
        some<B, R, kStrip>(a, first, a.count * (i + 1) / number - first);
    }
}

void direct(const DirectArgs& a) {
    if (a.lanes == 16) return a.results == 2 ? strips<16, 2>(a) : strips<16, 1>(a);
    a.results == 2 ? strips<8, 2>(a) : strips<8, 1>(a);
}

template <int B>
void weight(const DirectWeightArgs& a) {
    Vec<B> sum[B];
    for (int i = 0; i < B; ++i) sum[i] = load<B>(a.weights + i * B);
    for (int64_t row = 0; row < a.rows; ++row) {
        const float* x = a.x + row * a.x_row;
        const float* dy = a.dy + row * a.dy_row;
        for (int64_t j = 0; j < a.count; ++j, x += a.x_step, dy += B) {
            const Vec<B> factor = load<B>(dy);
            for (int i = 0; i < B; ++i) sum[i] = sum[i] + broadcast<B>(x[i]) * factor;
        }
    }
    for (int i = 0; i < B; ++i) store(a.weights + i * B, sum[i]);
}

void direct_weight(const DirectWeightArgs& a) { a.lanes == 16 ? weight<16>(a) : weight<8>(a); }

}  // namespace

void enter_direct(VectorKernels& table) {
    table.direct = direct;
    table.direct_weight = direct_weight;
}

}  // namespace convoy::cpu::vec::CONVOY_ISA
