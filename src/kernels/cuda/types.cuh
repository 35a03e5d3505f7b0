// Element types on the device: each has a wide type in which it is computed, and packs that are read and written in one access.
#pragma once

#include <cstdint>

#include <cuda_bf16.h>

#include "base/error.h"
#include "tensor/dtype.h"

namespace convoy::cuda {

using bf16 = __nv_bfloat16;

template <class T>
struct WideOf {
    using Type = float;
};
template <>
struct WideOf<double> {
    using Type = double;
};
// What T is computed in; also the type in which parameters and statistics of a T program are stored.
template <class T>
using Wide = typename WideOf<T>::Type;

template <class T>
__device__ __forceinline__ Wide<T> widen(T value) {
    return static_cast<Wide<T>>(value);
}
template <>
__device__ __forceinline__ float widen<bf16>(bf16 value) {
    return __bfloat162float(value);
}
template <class T>
__device__ __forceinline__ T narrow(Wide<T> value) {
    return static_cast<T>(value);
}
template <>
__device__ __forceinline__ bf16 narrow<bf16>(float value) {
    return __float2bfloat16_rn(value);
}

template <class T, int V>
struct alignas(sizeof(T) * V) Pack {
    T at[V];
};
template <int V, class T>
__device__ __forceinline__ Pack<T, V> load(const T* from) {
    return *reinterpret_cast<const Pack<T, V>*>(from);
}
template <int V, class T>
__device__ __forceinline__ void store(T* to, const Pack<T, V>& pack) {
    *reinterpret_cast<Pack<T, V>*>(to) = pack;
}

// Elements of T in an access of 16 bytes.
template <class T>
constexpr int kFullPack = 16 / static_cast<int>(sizeof(T));

// Calls fn(T{}) with the floating type that a dtype is stored in.
template <class Fn>
void with_floating(DType type, const Fn& fn) {
    switch (type) {
        case DType::f64: return fn(double{});
        case DType::tf32:
        case DType::f32: return fn(float{});
        case DType::bf16: return fn(bf16{});
        default: CONVOY_CHECK(false, "a kernel for floating types got {}", name_of(type));
    }
}

}  // namespace convoy::cuda
