#include <algorithm>
#include <array>

#include "kernels/reference/gemm.h"

namespace convoy::ref {

namespace {

// A tile of op(b) is copied together so that the innermost loop runs over neighbouring elements whether or not b is transposed.
constexpr int64_t kTileRows = 64, kTileColumns = 128;

}  // namespace

template <class T>
void gemm_plain(const Gemm<T>& g) {
    std::array<T, kTileRows * kTileColumns> tile;
    for (int64_t i = 0; i < g.m; ++i)
        for (int64_t j = 0; j < g.n; ++j) g.c[i * g.ldc + j] = g.beta == 0 ? T{0} : g.beta * g.c[i * g.ldc + j];
    for (int64_t p0 = 0; p0 < g.k; p0 += kTileRows) {
        const int64_t rows = std::min(kTileRows, g.k - p0);
        for (int64_t j0 = 0; j0 < g.n; j0 += kTileColumns) {
            const int64_t columns = std::min(kTileColumns, g.n - j0);
            for (int64_t p = 0; p < rows; ++p)
                for (int64_t j = 0; j < columns; ++j)
                    tile[static_cast<size_t>(p * columns + j)] =
                        g.transpose_b ? g.b[(j0 + j) * g.ldb + p0 + p] : g.b[(p0 + p) * g.ldb + j0 + j];
            for (int64_t i = 0; i < g.m; ++i) {
                T* const c = g.c + i * g.ldc + j0;
                for (int64_t p = 0; p < rows; ++p) {
                    const T a = g.alpha * (g.transpose_a ? g.a[(p0 + p) * g.lda + i] : g.a[i * g.lda + p0 + p]);
                    const T* const b = tile.data() + p * columns;
                    for (int64_t j = 0; j < columns; ++j) c[j] += a * b[j];
                }
            }
        }
    }
}

template void gemm_plain(const Gemm<double>&);
template void gemm_plain(const Gemm<float>&);

}  // namespace convoy::ref
