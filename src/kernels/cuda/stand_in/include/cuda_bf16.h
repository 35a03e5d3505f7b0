// bf16 on the host: see stand_in.h.
#pragma once

#include <cstdint>
#include <cstring>

struct __nv_bfloat16 {
    uint16_t bits;
};

inline float __bfloat162float(__nv_bfloat16 value) {
    const uint32_t wide = static_cast<uint32_t>(value.bits) << 16;
    float result = 0;
    std::memcpy(&result, &wide, sizeof result);
    return result;
}

// To nearest, ties to even.
inline __nv_bfloat16 __float2bfloat16_rn(float value) {
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return {0x7fff};
    return {static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
}
inline __nv_bfloat16 __float2bfloat16(float value) { return __float2bfloat16_rn(value); }
