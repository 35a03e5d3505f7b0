#include "kernels/reference/gemm.h"

#include "kernels/reference/view.h"

namespace convoy::ref {

namespace {

// Multiplications below which a thread is not worth starting.
constexpr int64_t kGrain = 1 << 16;

template <class T>
Gemm<T> rows_of(Gemm<T> g, Range rows) {
    g.m = rows.end - rows.begin;
    g.a += g.transpose_a ? rows.begin : rows.begin * g.lda;
    g.c += rows.begin * g.ldc;
    return g;
}

template <class T>
Gemm<T> columns_of(Gemm<T> g, Range columns) {
    g.n = columns.end - columns.begin;
    g.b += g.transpose_b ? columns.begin * g.ldb : columns.begin;
    g.c += columns.begin;
    return g;
}

}  // namespace

template <class T>
void gemm(const Gemm<T>& g) {
    if (g.m == 0 || g.n == 0) return;
    if (g.k == 0) {
        for (int64_t i = 0; i < g.m; ++i)
            for (int64_t j = 0; j < g.n; ++j) g.c[i * g.ldc + j] = g.beta == 0 ? T{0} : g.beta * g.c[i * g.ldc + j];
        return;
    }
    gemm_backend(g);
}

template <class T>
void gemm(const Gemm<T>& g, int threads) {
    const bool by_rows = g.m >= g.n;
    const int64_t longer = by_rows ? g.m : g.n;
    const int parts = std::min(parts_for(threads, g.m * g.n * g.k, kGrain), parts_for(threads, longer));
    parallel_parts(parts, longer, [&](int64_t, int64_t begin, int64_t end) {
        gemm(by_rows ? rows_of(g, {begin, end}) : columns_of(g, {begin, end}));
    });
}

template void gemm(const Gemm<double>&);
template void gemm(const Gemm<float>&);
template void gemm(const Gemm<double>&, int);
template void gemm(const Gemm<float>&, int);

}  // namespace convoy::ref
