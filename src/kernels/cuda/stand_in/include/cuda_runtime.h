// What a kernel finds around it: see stand_in.h. A file of kernels gets this header without asking, as from the real compiler.
#pragma once

#include <cuda_runtime_api.h>
#include <math.h>  // NOLINT: kernels call its functions without a namespace

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

extern __thread uint3 threadIdx, blockIdx, blockDim, gridDim;

namespace stand_in {

// Where in the source a thread waits.
struct Spot {
    const char* file = "";
    int line = 0;
    bool operator==(const Spot& other) const { return line == other.line && std::strcmp(file, other.file) == 0; }
};

// The calling thread goes on when all threads of its block have come here.
void barrier(const Spot& where);
// The same for the lanes of a warp; gives what lane ^ step has brought.
uint64_t exchange(unsigned mask, uint64_t value, int step, const Spot& where);

}  // namespace stand_in

inline void __syncthreads(const char* file = __builtin_FILE(), int line = __builtin_LINE()) { stand_in::barrier({file, line}); }

template <class T>
T __shfl_xor_sync(unsigned mask, T value, int step, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    static_assert(sizeof(T) <= sizeof(uint64_t) && std::is_trivially_copyable_v<T>);
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    bits = stand_in::exchange(mask, bits, step, {file, line});
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
