#include "comm/combine.h"

#include <bit>
#include <type_traits>

#include "base/error.h"

namespace convoy {

namespace {

struct Bf16 {
    uint16_t bits;
};

float value_of(Bf16 x) { return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16); }

// To nearest even, without a branch, so that it vectorises.
Bf16 rounded(float value) {
    const auto bits = std::bit_cast<uint32_t>(value);
    const uint32_t nearest = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
    const uint32_t quiet = (bits >> 16) | 0x40;
    return {static_cast<uint16_t>(value != value ? quiet : nearest)};
}

template <class T>
T add(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
        using Unsigned = std::make_unsigned_t<T>;  // wraps without undefined behaviour
        return static_cast<T>(static_cast<Unsigned>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b)));
    } else {
        return a + b;
    }
}

template <class T, ReduceOp kOp>
T combined(T a, T b) {
    if constexpr (std::is_same_v<T, Bf16>) {
        return rounded(combined<float, kOp>(value_of(a), value_of(b)));
    } else if constexpr (kOp == ReduceOp::Sum) {
        return add(a, b);
    } else if constexpr (kOp == ReduceOp::Max) {
        return a > b || a != a ? a : b;  // the second: a is NaN
    } else {
        return a < b || a != a ? a : b;
    }
}

template <class T, ReduceOp kOp>
void combine(std::byte* dst, const std::byte* a, const std::byte* b, int64_t count) {
    auto* const out = reinterpret_cast<T*>(dst);
    const auto* const x = reinterpret_cast<const T*>(a);
    const auto* const y = reinterpret_cast<const T*>(b);
    for (int64_t i = 0; i < count; ++i) out[i] = combined<T, kOp>(x[i], y[i]);
}

template <class T>
Combine typed(ReduceOp op) {
    switch (op) {
        case ReduceOp::Sum: return combine<T, ReduceOp::Sum>;
        case ReduceOp::Max: return combine<T, ReduceOp::Max>;
        case ReduceOp::Min: return combine<T, ReduceOp::Min>;
    }
    return nullptr;
}

}  // namespace

Combine combine_of(DType dtype, ReduceOp op) {
    switch (dtype) {
        case DType::f64: return typed<double>(op);
        case DType::f32: return typed<float>(op);
        case DType::bf16: return typed<Bf16>(op);
        case DType::i64: return typed<int64_t>(op);
        case DType::i32: return typed<int32_t>(op);
        case DType::u8: return typed<uint8_t>(op);
        case DType::tf32:
        case DType::f16: break;
    }
    fail("collectives do not reduce {}; expected f64, f32, bf16, i64, i32 or u8", name_of(dtype));
}

}  // namespace convoy
