// Chosen when OpenBLAS was not found at configuration.
#include "kernels/reference/gemm.h"

namespace convoy::ref {

template <class T>
void gemm_backend(const Gemm<T>& g) {
    gemm_plain(g);
}

template void gemm_backend(const Gemm<double>&);
template void gemm_backend(const Gemm<float>&);

const char* better_blas_kernels() { return nullptr; }

}  // namespace convoy::ref
