// Copies into shared memory that nobody waits for at once: see stand_in.h. Here they are done at once.
#pragma once

#include <cstring>

inline void __pipeline_memcpy_async(void* dst, const void* src, size_t bytes, size_t zeros = 0) {
    std::memcpy(dst, src, bytes - zeros);
    std::memset(static_cast<char*>(dst) + bytes - zeros, 0, zeros);
}
inline void __pipeline_commit() {}
inline void __pipeline_wait_prior(size_t) {}
