// What a kernel finds around it: see stand_in.h. A file of kernels gets this header without asking, as from the real compiler.
#pragma once

#include <cuda_runtime_api.h>
#include <math.h>  // NOLINT: kernels call its functions without a namespace

#include <algorithm>
#include <cstring>
#include <source_location>
#include <type_traits>
#include <vector>

extern __thread uint3 threadIdx, blockIdx, blockDim, gridDim;

namespace stand_in {

// The calling thread goes on when all threads of its block have come here.
void barrier(const std::source_location& where);
// The same for the lanes of a warp; gives what lane ^ step has brought.
uint64_t exchange(unsigned mask, uint64_t value, int step, const std::source_location& where);

}  // namespace stand_in

inline void __syncthreads(const std::source_location& where = std::source_location::current()) { stand_in::barrier(where); }

template <class T>
T __shfl_xor_sync(unsigned mask, T value, int step, const std::source_location& where = std::source_location::current()) {
    static_assert(sizeof(T) <= sizeof(uint64_t) && std::is_trivially_copyable_v<T>);
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    bits = stand_in::exchange(mask, bits, step, where);
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>(uint64_t{a} * b >> 32); }
inline float __int_as_float(int bits) {
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

template <class A, class B>
constexpr std::common_type_t<A, B> min(A a, B b) {
    return b < a ? b : a;
}
template <class A, class B>
constexpr std::common_type_t<A, B> max(A a, B b) {
    return a < b ? b : a;
}
