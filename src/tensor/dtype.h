// Element types. `tf32` is a way of computing on f32 storage; it never describes memory.
#pragma once

#include <cstdint>
#include <string_view>

namespace convoy {

enum class DType : uint8_t { f64, f32, tf32, bf16, f16, i64, i32, u8 };

// Bytes of one element in memory (tf32 is stored as f32).
int64_t size_of(DType type);
std::string_view name_of(DType type);
bool is_floating(DType type);
// The type with that name; Error names the known ones.
DType dtype_named(std::string_view name);

template <class T>
constexpr DType dtype_of();
template <>
constexpr DType dtype_of<double>() {
    return DType::f64;
}
template <>
constexpr DType dtype_of<float>() {
    return DType::f32;
}
template <>
constexpr DType dtype_of<int64_t>() {
    return DType::i64;
}
template <>
constexpr DType dtype_of<int32_t>() {
    return DType::i32;
}
template <>
constexpr DType dtype_of<uint8_t>() {
    return DType::u8;
}

}  // namespace convoy
