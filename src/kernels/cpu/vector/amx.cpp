#include "kernels/cpu/vector/amx.h"

#include <immintrin.h>

namespace convoy::cpu::vec {

namespace {

struct alignas(64) TileConfig {
    uint8_t palette, start, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};
// All eight alike. In memory from the start: compilers do not see that the instruction reads all of it.
constinit const TileConfig kConfig{1, 0, {}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};

__m512 vector(const float* from, int64_t at) { return at < 0 ? _mm512_setzero_ps() : _mm512_loadu_ps(from + at * kTile); }

__m512i bits(__m512bh halves) { return reinterpret_cast<__m512i>(halves); }

// The rounded halves of two vectors, one after the other, and what rounding left.
struct Split {
    __m512i high, low;
};
Split split_of(__m512 first, __m512 second) {
    const __m512i high = bits(_mm512_cvtne2ps_pbh(second, first));
    const auto widened = [](__m256i halves) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16)); };
    const __m512 left = _mm512_sub_ps(first, widened(_mm512_castsi512_si256(high)));
    const __m512 right = _mm512_sub_ps(second, widened(_mm512_extracti64x4_epi64(high, 1)));
    return {high, bits(_mm512_cvtne2ps_pbh(right, left))};
}

__m512i in_turns(__m512i halves) {
    alignas(64) static constexpr uint16_t kOrder[32] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                                        8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    return _mm512_permutexvar_epi16(_mm512_load_si512(kOrder), halves);
}

// 16 x 16 numbers of 32 bits.
void transpose(__m512i r[16]) {
    __m512i t[16];
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    }
    for (int i = 0; i < 16; i += 4) {
        r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    for (int i = 0; i < 4; ++i) {
        t[i] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
        t[i + 4] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xdd);
        t[i + 8] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
        t[i + 12] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xdd);
    }
    for (int i = 0; i < 4; ++i) {
        r[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
        r[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd);
        r[i + 4] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88);
        r[i + 12] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xdd);
    }
}

// Results are tiles 0 to 3, a's are 4 and 5, b's 6 and 7.
template <int M, int N>
void sum_of(const TileSum& s) {
    constexpr int kRow = static_cast<int>(kTile * sizeof(float));
    if (s.add) {
        _tile_loadd(0, s.c[0][0], kRow);
        if (N > 1) _tile_loadd(1, s.c[0][1], kRow);
        if (M > 1) _tile_loadd(2, s.c[1][0], kRow);
        if (M > 1 && N > 1) _tile_loadd(3, s.c[1][1], kRow);
    } else {
        _tile_zero(0);
        if (N > 1) _tile_zero(1);
        if (M > 1) _tile_zero(2);
        if (M > 1 && N > 1) _tile_zero(3);
    }
    const auto a_row = static_cast<int64_t>(sizeof(Half)) * s.a_row;
    constexpr int kBRow = static_cast<int>(kDeep * sizeof(Half));
    for (int64_t t = 0; t < s.terms; ++t) {
        const Half* const a = s.a + s.a_at[t];
        const Half* const b = s.b + s.b_at[t];
        _tile_loadd(6, b, kBRow);
        _tile_loadd(4, a, a_row);
        _tile_dpbf16ps(0, 4, 6);
        if (N > 1) {
            _tile_loadd(7, b + s.b_next, kBRow);
            _tile_dpbf16ps(1, 4, 7);
        }
        if (M > 1) {
            _tile_loadd(5, a + s.a_next, a_row);
            _tile_dpbf16ps(2, 5, 6);
            if (N > 1) _tile_dpbf16ps(3, 5, 7);
        }
        _tile_loadd(4, a + s.a_low, a_row);
        _tile_dpbf16ps(0, 4, 6);
        if (N > 1) _tile_dpbf16ps(1, 4, 7);
        if (M > 1) {
            _tile_loadd(5, a + s.a_next + s.a_low, a_row);
            _tile_dpbf16ps(2, 5, 6);
            if (N > 1) _tile_dpbf16ps(3, 5, 7);
        }
        _tile_loadd(6, b + s.b_low, kBRow);
        _tile_loadd(4, a, a_row);
        _tile_dpbf16ps(0, 4, 6);
        if (N > 1) {
            _tile_loadd(7, b + s.b_next + s.b_low, kBRow);
            _tile_dpbf16ps(1, 4, 7);
        }
        if (M > 1) {
            _tile_loadd(5, a + s.a_next, a_row);
            _tile_dpbf16ps(2, 5, 6);
            if (N > 1) _tile_dpbf16ps(3, 5, 7);
        }
    }
    _tile_stored(0, s.c[0][0], kRow);
    if (N > 1) _tile_stored(1, s.c[0][1], kRow);
    if (M > 1) _tile_stored(2, s.c[1][0], kRow);
    if (M > 1 && N > 1) _tile_stored(3, s.c[1][1], kRow);
}

}  // namespace

void begin_tiles() { _tile_loadconfig(&kConfig); }

void end_tiles() { _tile_release(); }

void split(const float* from, const int64_t* at, int64_t count, int64_t second, Half* high, Half* low) {
    for (int64_t i = 0; i < count; ++i) {
        const Split s = split_of(vector(from, at[i]), second == 0 ? _mm512_setzero_ps() : vector(from + second, at[i]));
        _mm512_storeu_si512(high + i * kDeep, s.high);
        _mm512_storeu_si512(low + i * kDeep, s.low);
    }
}

void split_in_turns(const float* from, const int64_t* at, int64_t count, Half* high, Half* low) {
    for (int64_t i = 0; i < count; i += 2) {
        const Split s = split_of(vector(from, at[i]), vector(from, at[i + 1]));
        _mm512_storeu_si512(high + i * kTile, in_turns(s.high));
        _mm512_storeu_si512(low + i * kTile, in_turns(s.low));
    }
}

void split_transposed(const float* from, const int64_t* at, int64_t count, Half* high, Half* low, int64_t step, int64_t next) {
    for (int64_t first = 0; first < count; first += kDeep, high += next, low += next) {
        __m512i highs[kTile], lows[kTile];
        for (int64_t i = 0; i < kTile; ++i) {
            const Split s = split_of(vector(from, at[first + 2 * i]), vector(from, at[first + 2 * i + 1]));
            highs[i] = in_turns(s.high);
            lows[i] = in_turns(s.low);
        }
        transpose(highs);
        transpose(lows);
        for (int64_t i = 0; i < kTile; ++i) {
            _mm512_storeu_si512(high + i * step, highs[i]);
            _mm512_storeu_si512(low + i * step, lows[i]);
        }
    }
}

void store_rows(const float* tile, float* to, const int64_t* at) {
    for (int64_t i = 0; i < kTile; ++i)
        if (at[i] >= 0) _mm512_storeu_ps(to + at[i] * kTile, _mm512_loadu_ps(tile + i * kTile));
}

void sum_tiles(const TileSum& sum) {
    if (sum.m == 2) return sum.n == 2 ? sum_of<2, 2>(sum) : sum_of<2, 1>(sum);
    return sum.n == 2 ? sum_of<1, 2>(sum) : sum_of<1, 1>(sum);
}

}  // namespace convoy::cpu::vec
