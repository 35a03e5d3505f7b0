// How kernels go through Spans: units, periods, vectors, and sums per channel. Compiled per instruction set; internal to this folder.
#pragma once

#include "kernels/cpu/vector/kernels.h"
#include "kernels/cpu/vector/vec.h"

namespace convoy::cpu::vec::CONVOY_ISA {

// A unit of work: `count` contiguous elements from offset `first` of the tensor, which begin a period of block `block`.
struct Unit {
    int64_t block, first, count;
};

template <class Fn>
CONVOY_INLINE void for_units(const Spans& s, int64_t begin, int64_t end, const Fn& fn) {
    for (int64_t u = begin; u < end; ++u) {
        const int64_t plane = u / s.units, start = u % s.units * s.unit;
        fn(Unit{plane % s.blocks, plane * s.elements + start, least(s.unit, s.elements - start)});
    }
}

// Per-channel vectors of one block, repeated to a period.
template <int K>
struct Periods {
    const float* of[K];
    alignas(64) float own[K][kShortPeriod];

    CONVOY_INLINE Periods(const Spans& s, const float* const (&vectors)[K], int64_t block) {
        for (int k = 0; k < K; ++k) {
            of[k] = vectors[k] + block * s.stored;
            if (s.stored == s.period) continue;
            if (s.stored == 1) {
                for (int64_t j = 0; j < kShortPeriod; j += 16) store(own[k] + j, broadcast<16>(*of[k]));
                of[k] = own[k];
                continue;
            }
            for (int64_t first = 0; first < kShortPeriod; first += s.stored)
                for (int64_t l = 0; l < s.stored; ++l) own[k][first + l] = of[k][l];
            of[k] = own[k];
        }
    }
};

// Calls fn(Lanes<N>, i, j) for all elements i of a unit, N at a time, j being the place in the period.
template <class Fn>
CONVOY_INLINE void for_vectors(int64_t count, int64_t period, const Fn& fn) {
    int64_t i = 0, j = 0;
    for (; i + 16 <= count; i += 16) {
        fn(Lanes<16>{}, i, j);
        j += 16;
        if (j == period) j = 0;
    }
    for (; i < count; ++i, ++j) fn(Lanes<1>{}, i, j);
}

// The same for sums: one period after the other.
template <class Fn>
CONVOY_INLINE void for_rows(int64_t count, int64_t period, const Fn& fn) {
    for (int64_t row = 0; row < count; row += period) {
        const int64_t width = least(period, count - row);
        int64_t j = 0;
        for (; j + 16 <= width; j += 16) fn(Lanes<16>{}, row + j, j);
        for (; j < width; ++j) fn(Lanes<1>{}, row + j, j);
    }
}

CONVOY_INLINE void clear(float* p, int64_t count) {
    for (int64_t i = 0; i < count; ++i) p[i] = 0;
}

// Adds what a unit found, value(j) for every place j of the period, to the sums of its block.
template <class Fn>
CONVOY_INLINE void add_period(const Spans& s, double* sums, int64_t block, const Fn& value) {
    double* const to = sums + block * s.stored;
    if (s.stored == 1) {
        double sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t j = 0; j < kShortPeriod; ++j) sum += value(j);
        *to += sum;
        return;
    }
    for (int64_t first = 0; first < s.period; first += s.stored)
#pragma omp simd
        for (int64_t l = 0; l < s.stored; ++l) to[l] += value(first + l);
}
CONVOY_INLINE void add_floats(const Spans& s, double* sums, int64_t block, const float* period) {
    add_period(s, sums, block, [=](int64_t j) { return static_cast<double>(period[j]); });
}

}  // namespace convoy::cpu::vec::CONVOY_ISA
