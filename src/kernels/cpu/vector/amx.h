// Products of matrices in bf16 tiles (Intel's AMX), for float32 numbers that are split into two halves: x = high + low, each bf16, which keeps 16 bits
// of the fraction. A product takes three products of halves; low times low is left out.
#pragma once

#include <cstdint>

namespace convoy::cpu::vec {

using Half = uint16_t;                // the bits of a bf16
constexpr int64_t kTile = 16;         // rows of a tile, and floats in a row of its result
constexpr int64_t kDeep = 32;         // halves in a row: how many terms of a sum a tile has
constexpr int64_t kTileHalves = 512;  // of a tile

// Whether the processor has them and the system lets us use them; asks it for that once.
bool amx_ready();

// The calling thread may use tiles from the first to the second call.
void begin_tiles();
void end_tiles();

// Vectors of 16 floats lie at from + 16 * at[i]; where at[i] is negative there is a vector of zeros.
// Splits vectors i = 0 .. count and those `second` floats further on (0: zeros) into 32 halves each, one vector after the other.
void split(const float* from, const int64_t* at, int64_t count, int64_t second, Half* high, Half* low);
// Splits pairs of vectors (count is even) into 32 halves each, of both in turns.
void split_in_turns(const float* from, const int64_t* at, int64_t count, Half* high, Half* low);
// Splits `count` vectors (a multiple of 32) into matrices of 16 rows and 32 columns: the halves of each lane together. Rows are `step` halves
// apart, matrices `next`.
void split_transposed(const float* from, const int64_t* at, int64_t count, Half* high, Half* low, int64_t step, int64_t next);
// Rows of a result to where at[] says.
void store_rows(const float* tile, float* to, const int64_t* at);

// Sums of products of tiles: c[i][j] = (add: c[i][j] +) sum over t of a[i][t] * b[j][t], for m x n results, m and n at most 2.
struct TileSum {
    int m, n;
    int64_t terms;
    const Half* a;  // a[i][t] lies at a + i * a_next + a_at[t]; its low halves a_low further on
    const int64_t* a_at;
    int64_t a_next, a_low, a_row;  // rows are a_row halves apart
    const Half* b;                 // a tile is [16][16][2]: pairs of terms in turns
    const int64_t* b_at;
    int64_t b_next, b_low;
    float* c[2][2];
    bool add;
};
void sum_tiles(const TileSum& sum);

}  // namespace convoy::cpu::vec
