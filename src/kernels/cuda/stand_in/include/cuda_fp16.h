// f16 on the host: see stand_in.h.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

struct __half {
    uint16_t bits;
};

inline float __half2float(__half value) {
    const int exponent = value.bits >> 10 & 31, fraction = value.bits & 1023;
    const float sign = value.bits >> 15 ? -1.0f : 1.0f;
    if (exponent == 31) return fraction ? std::numeric_limits<float>::quiet_NaN() : sign * std::numeric_limits<float>::infinity();
    return sign *
           (exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24) : std::ldexp(static_cast<float>(fraction + 1024), exponent - 25));
}

// To nearest, ties to even.
inline __half __float2half_rn(float value) {
    const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    const float size = std::fabs(value);
    const auto with_sign = [&](int bits) { return __half{static_cast<uint16_t>(sign | bits)}; };
    if (std::isnan(value)) return with_sign(0x7fff);
    if (size >= 65520.0f) return with_sign(0x7c00);
    if (size < std::ldexp(1.0f, -14)) return with_sign(static_cast<int>(std::nearbyint(std::ldexp(size, 24))));
    const int exponent = std::ilogb(size);
    // A fraction that is rounded up to 2048 carries into the exponent.
    return with_sign(((exponent + 14) << 10) + static_cast<int>(std::nearbyint(std::ldexp(size, 10 - exponent))));
}
