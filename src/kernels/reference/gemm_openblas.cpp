// Products by OpenBLAS. It is kept to the calling thread, because we divide the work ourselves: then results do not depend on how OpenBLAS
// was built, and ranks that are threads of one process do not fight over its one pool.
#include <algorithm>
#include <cstdint>
#include <mutex>
#include <string_view>

#include <cblas.h>
#include <omp.h>

#include "kernels/reference/gemm.h"

namespace convoy::ref {

namespace {

constexpr int64_t kMost = INT32_MAX;

// An OpenBLAS built on OpenMP takes as many threads as the calling thread would; that setting belongs to the thread and is put back.
class OneThread {
  public:
    OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
    ~OneThread() { omp_set_num_threads(before_); }
    OneThread(const OneThread&) = delete;
    OneThread& operator=(const OneThread&) = delete;

  private:
    int before_;
};

// One built on its own threads has a setting for the whole process instead.
void close_pool() {
    static std::once_flag once;
    std::call_once(once, [] {
        if (openblas_get_parallel() == OPENBLAS_THREAD) openblas_set_num_threads(1);
    });
}

CBLAS_TRANSPOSE flag(bool transpose) { return transpose ? CblasTrans : CblasNoTrans; }
blasint narrow(int64_t value) { return static_cast<blasint>(value); }

void call(const Gemm<double>& g) {
    cblas_dgemm(CblasRowMajor, flag(g.transpose_a), flag(g.transpose_b), narrow(g.m), narrow(g.n), narrow(g.k), g.alpha, g.a, narrow(g.lda),
                g.b, narrow(g.ldb), g.beta, g.c, narrow(g.ldc));
}
void call(const Gemm<float>& g) {
    cblas_sgemm(CblasRowMajor, flag(g.transpose_a), flag(g.transpose_b), narrow(g.m), narrow(g.n), narrow(g.k), g.alpha, g.a, narrow(g.lda),
                g.b, narrow(g.ldb), g.beta, g.c, narrow(g.ldc));
}

}  // namespace

template <class T>
void gemm_backend(const Gemm<T>& g) {
    if (std::max({g.m, g.n, g.k, g.lda, g.ldb, g.ldc}) > kMost) return gemm_plain(g);
    close_pool();
    const OneThread one;
    call(g);
}

template void gemm_backend(const Gemm<double>&);
template void gemm_backend(const Gemm<float>&);

const char* better_blas_kernels() {
#if defined(__x86_64__)
    if (std::string_view(openblas_get_corename()) != "Prescott") return nullptr;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl"))
        return "SkylakeX";
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "Haswell";
#endif
    return nullptr;
}

}  // namespace convoy::ref
