// Small matrix products without rearranging: a few rows of the result stay in registers while a panel of b goes by.
#include "kernels/cpu/vector/families.h"
#include "kernels/cpu/vector/vec.h"

namespace convoy::cpu::vec::CONVOY_ISA {

namespace {

// With 32 registers two blocks of 12 rows leave room for what is multiplied; with 16, two of 4 do.
constexpr int kRows = CONVOY_WIDTH == 16 ? 12 : 4;

template <int B, int S, int R>
void strip(const ProductArgs& p, const float* a, const float* b, float* c) {
    Vec<B> sum[R][S];
    for (int r = 0; r < R; ++r)
        for (int s = 0; s < S; ++s) sum[r][s] = broadcast<B>(0);
    const int64_t row = p.a_row, column = p.a_column, b_row = p.b_row, count = p.k;
    for (int64_t k = 0; k < count; ++k, a += column, b += b_row) {
        Vec<B> factor[R];
        for (int r = 0; r < R; ++r) factor[r] = load<B>(b + r * B);
        for (int s = 0; s < S; ++s) {
            const Vec<B> value = broadcast<B>(a[s * row]);
            for (int r = 0; r < R; ++r) sum[r][s] = sum[r][s] + value * factor[r];
        }
    }
    const Vec<B> scale = broadcast<B>(p.scale);
    for (int r = 0; r < R; ++r)
        for (int s = 0; s < S; ++s) {
            float* const at = c + s * p.c_row + r * B;
            store(at, p.add ? load<B>(at) + scale * sum[r][s] : scale * sum[r][s]);
        }
}

// Of S rows or, where that is too many, of as many as there are.
template <int B, int R, int S>
CONVOY_INLINE void some(const ProductArgs& p, const float* a, const float* b, float* c, int64_t count) {
    if constexpr (S > 1)
        if (count < S) return some<B, R, S - 1>(p, a, b, c, count);
    strip<B, S, R>(p, a, b, c);
}

// In strips of about one length.
template <int B, int R>
void panel(const ProductArgs& p, const float* b, float* c) {
    const int64_t number = (p.m + kRows - 1) / kRows;
    for (int64_t i = 0; i < number; ++i) {
        const int64_t first = p.m * i / number;
        some<B, R, kRows>(p, p.a + first * p.a_row, b, c + first * p.c_row, p.m * (i + 1) / number - first);
    }
}

template <int B>
void panels(const ProductArgs& p) {
    for (int64_t block = 0; block < p.blocks; block += 2) {
        const float* const b = p.b + block / 2 * p.b_panel;
        float* const c = p.c + block / 2 * p.c_panel;
        block + 2 <= p.blocks ? panel<B, 2>(p, b, c) : panel<B, 1>(p, b, c);
    }
}

void product(const ProductArgs& p) { p.lanes == 16 ? panels<16>(p) : panels<8>(p); }

}  // namespace

void enter_product(VectorKernels& table) { table.product = product; }

}  // namespace convoy::cpu::vec::CONVOY_ISA
