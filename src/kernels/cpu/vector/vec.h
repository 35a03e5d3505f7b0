// N floats as one value: one register of the instruction set that the file is compiled for, or several. And what else the kernels of this
// folder share. Everything is in a namespace of the instruction set's own (CONVOY_ISA), whose registers hold CONVOY_WIDTH floats.
#pragma once

#include <cstdint>

#define CONVOY_INLINE __attribute__((always_inline)) inline

namespace convoy::cpu::vec::CONVOY_ISA {

template <int N>
struct Native;
template <>
struct Native<1> {
    using Float = float;
    using Int = int32_t;
    using Byte = uint8_t;
};
template <>
struct Native<4> {
    using Float __attribute__((vector_size(16))) = float;
    using Int __attribute__((vector_size(16))) = int32_t;
    using Byte __attribute__((vector_size(4))) = uint8_t;
};
template <>
struct Native<8> {
    using Float __attribute__((vector_size(32))) = float;
    using Int __attribute__((vector_size(32))) = int32_t;
    using Byte __attribute__((vector_size(8))) = uint8_t;
};
template <>
struct Native<16> {
    using Float __attribute__((vector_size(64))) = float;
    using Int __attribute__((vector_size(64))) = int32_t;
    using Byte __attribute__((vector_size(16))) = uint8_t;
};

template <int N>
inline constexpr int kWidthOf = N < CONVOY_WIDTH ? N : CONVOY_WIDTH;

template <int N>
struct Vec {
    static constexpr int kParts = N / kWidthOf<N>;
    typename Native<kWidthOf<N>>::Float part[kParts];
};
template <int N>
struct IntVec {
    static constexpr int kParts = N / kWidthOf<N>;
    typename Native<kWidthOf<N>>::Int part[kParts];
};
// What a comparison gives: every lane all ones or zero (for N = 1: true or false).
template <int N>
struct MaskVec {
    static constexpr int kParts = N / kWidthOf<N>;
    typename Native<kWidthOf<N>>::Int part[kParts];
};

// Part by part, because a copy of several registers at once would go through memory.
template <int N>
CONVOY_INLINE Vec<N> load(const float* from) {
    Vec<N> v;
    for (int p = 0; p < Vec<N>::kParts; ++p) __builtin_memcpy(&v.part[p], from + p * kWidthOf<N>, sizeof v.part[p]);
    return v;
}
template <int N>
CONVOY_INLINE void store(float* to, const Vec<N>& v) {
    for (int p = 0; p < Vec<N>::kParts; ++p) __builtin_memcpy(to + p * kWidthOf<N>, &v.part[p], sizeof v.part[p]);
}
template <int N>
CONVOY_INLINE Vec<N> broadcast(float value) {
    Vec<N> v;
    for (int p = 0; p < Vec<N>::kParts; ++p) v.part[p] = value - typename Native<kWidthOf<N>>::Float{};
    return v;
}
template <int N>
CONVOY_INLINE IntVec<N> broadcast_int(int32_t value) {
    IntVec<N> v;
    for (int p = 0; p < Vec<N>::kParts; ++p) v.part[p] = value - typename Native<kWidthOf<N>>::Int{};
    return v;
}

template <int N>
CONVOY_INLINE Vec<N> operator+(Vec<N> a, const Vec<N>& b) {
    for (int p = 0; p < Vec<N>::kParts; ++p) a.part[p] += b.part[p];
    return a;
}
template <int N>
CONVOY_INLINE Vec<N> operator-(Vec<N> a, const Vec<N>& b) {
    for (int p = 0; p < Vec<N>::kParts; ++p) a.part[p] -= b.part[p];
    return a;
}
template <int N>
CONVOY_INLINE Vec<N> operator*(Vec<N> a, const Vec<N>& b) {
    for (int p = 0; p < Vec<N>::kParts; ++p) a.part[p] *= b.part[p];
    return a;
}

template <int N>
CONVOY_INLINE MaskVec<N> operator<=(const Vec<N>& a, const Vec<N>& b) {
    MaskVec<N> m;
    for (int p = 0; p < Vec<N>::kParts; ++p) m.part[p] = a.part[p] <= b.part[p];
    return m;
}
template <int N>
CONVOY_INLINE MaskVec<N> operator>(const Vec<N>& a, const Vec<N>& b) {
    MaskVec<N> m;
    for (int p = 0; p < Vec<N>::kParts; ++p) m.part[p] = a.part[p] > b.part[p];
    return m;
}
template <int N>
CONVOY_INLINE MaskVec<N> is_nan(const Vec<N>& a) {
    MaskVec<N> m;
    for (int p = 0; p < Vec<N>::kParts; ++p) m.part[p] = a.part[p] != a.part[p];
    return m;
}
template <int N>
CONVOY_INLINE MaskVec<N> either(MaskVec<N> a, const MaskVec<N>& b) {
    for (int p = 0; p < Vec<N>::kParts; ++p) a.part[p] |= b.part[p];
    return a;
}
template <int N>
CONVOY_INLINE MaskVec<N> operator==(const IntVec<N>& a, const IntVec<N>& b) {
    MaskVec<N> m;
    for (int p = 0; p < Vec<N>::kParts; ++p) m.part[p] = a.part[p] == b.part[p];
    return m;
}

template <int N>
CONVOY_INLINE Vec<N> select(const MaskVec<N>& m, const Vec<N>& yes, const Vec<N>& no) {
    Vec<N> v;
    for (int p = 0; p < Vec<N>::kParts; ++p) v.part[p] = m.part[p] ? yes.part[p] : no.part[p];
    return v;
}
template <int N>
CONVOY_INLINE IntVec<N> select(const MaskVec<N>& m, const IntVec<N>& yes, const IntVec<N>& no) {
    IntVec<N> v;
    for (int p = 0; p < Vec<N>::kParts; ++p) v.part[p] = m.part[p] ? yes.part[p] : no.part[p];
    return v;
}
// The elements 0, 2, 4, .. of a and then of b.
template <int N>
CONVOY_INLINE Vec<N> even_elements(const Vec<N>& a, const Vec<N>& b) {
    constexpr int kParts = Vec<N>::kParts;
    Vec<N> v;
    for (int p = 0; p < kParts; ++p) {
        const auto first = 2 * p < kParts ? a.part[2 * p % kParts] : b.part[2 * p % kParts];
        const auto second = 2 * p + 1 < kParts ? a.part[(2 * p + 1) % kParts] : b.part[(2 * p + 1) % kParts];
        if constexpr (kWidthOf<N> == 16)
            v.part[p] = __builtin_shufflevector(first, second, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
        else if constexpr (kWidthOf<N> == 8)
            v.part[p] = __builtin_shufflevector(first, second, 0, 2, 4, 6, 8, 10, 12, 14);
        else
            v.part[p] = __builtin_shufflevector(first, second, 0, 2, 4, 6);
    }
    return v;
}

template <int N>
CONVOY_INLINE void accumulate(float* at, const Vec<N>& v) {
    store(at, load<N>(at) + v);
}

// NaN stays NaN, as in every activation here.
template <int N>
CONVOY_INLINE Vec<N> relu(const Vec<N>& v) {
    return select(v <= broadcast<N>(0), broadcast<N>(0), v);
}

// Positions in a window.
template <int N>
CONVOY_INLINE IntVec<N> load_where(const int32_t* from) {
    IntVec<N> v;
    for (int p = 0; p < IntVec<N>::kParts; ++p) __builtin_memcpy(&v.part[p], from + p * kWidthOf<N>, sizeof v.part[p]);
    return v;
}
template <int N>
CONVOY_INLINE void store_where(int32_t* to, const IntVec<N>& v) {
    for (int p = 0; p < IntVec<N>::kParts; ++p) __builtin_memcpy(to + p * kWidthOf<N>, &v.part[p], sizeof v.part[p]);
}
template <int N>
CONVOY_INLINE IntVec<N> load_where(const uint8_t* from) {
    constexpr int kWidth = kWidthOf<N>;
    IntVec<N> v;
    for (int p = 0; p < IntVec<N>::kParts; ++p) {
        typename Native<kWidth>::Byte bytes;
        __builtin_memcpy(&bytes, from + p * kWidth, kWidth);
        if constexpr (N == 1)
            v.part[p] = bytes;
        else
            v.part[p] = __builtin_convertvector(bytes, typename Native<kWidth>::Int);
    }
    return v;
}
template <int N>
CONVOY_INLINE void store_where(uint8_t* to, const IntVec<N>& v) {
    constexpr int kWidth = kWidthOf<N>;
    for (int p = 0; p < IntVec<N>::kParts; ++p) {
        typename Native<kWidth>::Byte bytes;
        if constexpr (N == 1)
            bytes = static_cast<uint8_t>(v.part[p]);
        else
            bytes = __builtin_convertvector(v.part[p], typename Native<kWidth>::Byte);
        __builtin_memcpy(to + p * kWidth, &bytes, kWidth);
    }
}

// Lanes<N>{} tells a generic lambda how many elements to take at once.
template <int N>
struct Lanes {
    static constexpr int n = N;
};

CONVOY_INLINE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

}  // namespace convoy::cpu::vec::CONVOY_ISA
