// exp, tanh, erf and the sigmoid in float, without branches or tables, so that loops over them become vector code. Relative errors are a few
// 1e-7 (math_test measures them). NaN stays NaN. Compiled per instruction set; internal to this folder.
#pragma once

#include <cstdint>

#include "kernels/cpu/vector/vec.h"

namespace convoy::cpu::vec::CONVOY_ISA {

// 2^n for n in [-126, 127].
CONVOY_INLINE float power_of_two(int32_t n) { return __builtin_bit_cast(float, static_cast<uint32_t>(n + 127) << 23); }

// 0 below -87.3 (where a result would be no normal number), infinite above 88.7.
CONVOY_INLINE float exp_of(float x) {
    constexpr float kMost = 88.72284f, kLeast = -87.33655f, kRound = 12582912.0f;  // kRound: 1.5*2^23
    const float clamped = x > kMost ? kMost : x < kLeast ? kLeast : x;
    // x = n*log(2) + r with |r| <= log(2)/2; log(2) in two parts, the first short enough for n times it to be exact.
    const float shifted = clamped * 1.44269504f + kRound, n = shifted - kRound;
    const float r = (clamped - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    // In two factors, because 2^128 is no float.
    const int32_t whole = __builtin_bit_cast(int32_t, shifted) - __builtin_bit_cast(int32_t, kRound), half = whole >> 1;
    const float result = p * power_of_two(half) * power_of_two(whole - half);
    const float bounded = x > kMost ? __builtin_inff() : x < kLeast ? 0.0f : result;
    return x == x ? bounded : x;
}

CONVOY_INLINE float sigmoid_of(float x) { return 1.0f / (1.0f + exp_of(-x)); }

// A quotient of polynomials up to where float's tanh is 1.
CONVOY_INLINE float tanh_of(float x) {
    constexpr float kMost = 7.90531110763549805f;
    const float t = x > kMost ? kMost : x < -kMost ? -kMost : x, s = t * t;
    float p = -2.76076847742355e-16f;
    p = p * s + 2.00018790482477e-13f;
    p = p * s + -8.60467152213735e-11f;
    p = p * s + 5.12229709037114e-08f;
    p = p * s + 1.48572235717979e-05f;
    p = p * s + 6.37261928875436e-04f;
    p = p * s + 4.89352455891786e-03f;
    float q = 1.19825839466702e-06f;
    q = q * s + 1.18534705686654e-04f;
    q = q * s + 2.26843463243900e-03f;
    q = q * s + 4.89352518554385e-03f;
    return x > kMost ? 1.0f : x < -kMost ? -1.0f : t * p / q;
}

CONVOY_INLINE float erf_of(float x) {
    constexpr float kMost = 3.832506856900711f;
    const float t = x > kMost ? kMost : x < -kMost ? -kMost : x, s = t * t;
    float p = -2.72614225801306e-10f;
    p = p * s + 2.77068142495902e-08f;
    p = p * s + -2.10102402082508e-06f;
    p = p * s + -5.69250639462346e-05f;
    p = p * s + -7.34990630326855e-04f;
    p = p * s + -2.95459980854025e-03f;
    p = p * s + -1.60960333262415e-02f;
    float q = -1.45660718464996e-05f;
    q = q * s + -2.13374055278905e-04f;
    q = q * s + -1.68282697438203e-03f;
    q = q * s + -7.37332916720468e-03f;
    q = q * s + -1.42647390514189e-02f;
    return x > kMost ? 1.0f : x < -kMost ? -1.0f : t * p / q;
}

}  // namespace convoy::cpu::vec::CONVOY_ISA
