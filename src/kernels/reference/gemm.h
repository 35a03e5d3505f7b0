// Matrix products, row-major: c = alpha * op(a) * op(b) + beta * c, where op(a) is m x k, op(b) is k x n and c is m x n.
#pragma once

#include <cstdint>

namespace convoy::ref {

template <class T>
struct Gemm {
    int64_t m = 0, n = 0, k = 0;
    const T* a = nullptr;
    int64_t lda = 0;  // elements from one row to the next, as the matrix lies in memory
    bool transpose_a = false;
    const T* b = nullptr;
    int64_t ldb = 0;
    bool transpose_b = false;
    T* c = nullptr;
    int64_t ldc = 0;
    T alpha = 1, beta = 0;  // with beta 0, c is written without being read
};

// In the calling thread alone, whatever library does it, so that it may be called by many threads at once. Sizes may be zero.
template <class T>
void gemm(const Gemm<T>& g);

// On `threads` threads, each with its own rows or columns of c.
template <class T>
void gemm(const Gemm<T>& g, int threads);

// The same in plain loops: what is used where no BLAS is installed, and what a BLAS is tested against.
template <class T>
void gemm_plain(const Gemm<T>& g);

// The product by whatever this build has; m, n and k are positive.
template <class T>
void gemm_backend(const Gemm<T>& g);

// A value for OPENBLAS_CORETYPE, or null. OpenBLAS takes its oldest kernels on a processor that is newer than it is, several times slower than what that
// processor can do, and reads the variable only when it is loaded.
const char* better_blas_kernels();

}  // namespace convoy::ref
