// cuBLASLt's stand-in: products of column-major matrices.
#include <cublasLt.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "kernels/cuda/stand_in/stand_in.h"

using namespace stand_in;

struct StandInBlas {};
struct StandInProduct {
    cublasComputeType_t compute;
    cublasOperation_t a = CUBLAS_OP_N, b = CUBLAS_OP_N;
};
struct StandInMatrix {
    cudaDataType type;
    int64_t rows, columns, pitch;
    int32_t batch = 1;
    int64_t next = 0;
};
struct StandInPreference {
    size_t workspace = 0;
};

namespace {

// A matrix as it is multiplied, in full.
struct Numbers {
    int64_t rows, columns;
    std::vector<double> at;  // row-major
};

Numbers numbers_of(const void* data, const StandInMatrix& m, int32_t of_batch, bool transposed, bool to_tf32) {
    Numbers n{transposed ? m.columns : m.rows, transposed ? m.rows : m.columns, {}};
    n.at.resize(static_cast<size_t>(n.rows * n.columns));
    for (int64_t r = 0; r < m.rows; ++r)
        for (int64_t c = 0; c < m.columns; ++c) {
            double value = element(data, m.type, of_batch * m.next + c * m.pitch + r);
            if (to_tf32) value = rounded_to_tf32(static_cast<float>(value));
            n.at[static_cast<size_t>(transposed ? c * n.columns + r : r * n.columns + c)] = value;
        }
    return n;
}

template <class T>
cublasStatus_t take(T& field, const void* value, size_t bytes) {
    if (bytes != sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(&field, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

// What an algorithm writes over, of what it was given.
constexpr size_t kWorkspace = 1024;

}  // namespace

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
    *handle = new StandInBlas;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}
const char* cublasLtGetStatusString(cublasStatus_t status) {
    switch (status) {
        case CUBLAS_STATUS_SUCCESS: return "CUBLAS_STATUS_SUCCESS";
        case CUBLAS_STATUS_ALLOC_FAILED: return "CUBLAS_STATUS_ALLOC_FAILED";
        case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
        case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
    }
    return "unknown";
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* product, cublasComputeType_t compute, cudaDataType scale) {
    if ((compute == CUBLAS_COMPUTE_64F) != (scale == CUDA_R_64F)) return CUBLAS_STATUS_NOT_SUPPORTED;
    *product = new StandInProduct{compute};
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t name, const void* value,
                                              size_t bytes) {
    return take(name == CUBLASLT_MATMUL_DESC_TRANSA ? product->a : product->b, value, bytes);
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t product) {
    delete product;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* matrix, cudaDataType type, uint64_t rows, uint64_t columns,
                                          int64_t pitch) {
    *matrix = new StandInMatrix{type, static_cast<int64_t>(rows), static_cast<int64_t>(columns), pitch};
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t matrix, cublasLtMatrixLayoutAttribute_t name, const void* value,
                                                size_t bytes) {
    return name == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT ? take(matrix->batch, value, bytes) : take(matrix->next, value, bytes);
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t matrix) {
    delete matrix;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
    *preference = new StandInPreference;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t name,
                                                    const void* value, size_t bytes) {
    if (name == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) return take(preference->workspace, value, bytes);
    uint32_t alignment = 0;
    return take(alignment, value, bytes);
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
    delete preference;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t a,
                                              cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted, cublasLtMatmulHeuristicResult_t* results,
                                              int* count) {
    *count = 0;
    const auto shape = [](const StandInMatrix& m, cublasOperation_t how) {
        return how == CUBLAS_OP_T ? std::pair(m.columns, m.rows) : std::pair(m.rows, m.columns);
    };
    const auto [rows, inner] = shape(*a, product->a);
    const auto [inner_too, columns] = shape(*b, product->b);
    const bool fits = inner == inner_too && rows == c->rows && columns == c->columns && a->batch == c->batch && b->batch == c->batch;
    const std::array all{a, b, c, d};
    const bool lies = std::all_of(all.begin(), all.end(), [](const StandInMatrix* m) { return m->pitch >= m->rows; });
    if (!fits || !lies) return CUBLAS_STATUS_INVALID_VALUE;
    if (a->type != b->type || wanted < 1) return CUBLAS_STATUS_NOT_SUPPORTED;
    const size_t workspace = std::min(preference->workspace, kWorkspace);
    results[(*count)++] = {{workspace}, workspace, CUBLAS_STATUS_SUCCESS, 1};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t product, const void* alpha, const void* a, cublasLtMatrixLayout_t of_a,
                              const void* b, cublasLtMatrixLayout_t of_b, const void* beta, const void* c, cublasLtMatrixLayout_t of_c,
                              void* d, cublasLtMatrixLayout_t of_d, const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              size_t workspace_bytes, cudaStream_t stream) {
    const bool wide = product->compute == CUBLAS_COMPUTE_64F;
    const cudaDataType scale = wide ? CUDA_R_64F : CUDA_R_32F;
    const size_t used = algorithm->workspace;
    if (used > workspace_bytes || c != d) return CUBLAS_STATUS_INVALID_VALUE;
    // All but the memory of the matrices is read now.
    enqueue(stream, [=, p = *product, ma = *of_a, mb = *of_b, mc = *of_c, md = *of_d, times = element(alpha, scale, 0),
                     keep = element(beta, scale, 0)] {
        if (used > 0) std::memset(workspace, 0xFF, used);
        const bool to_tf32 = p.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
        for (int32_t i = 0; i < mc.batch; ++i) {
            const Numbers na = numbers_of(a, ma, i, p.a == CUBLAS_OP_T, to_tf32), nb = numbers_of(b, mb, i, p.b == CUBLAS_OP_T, to_tf32);
            std::vector<double> row(static_cast<size_t>(nb.columns));
            for (int64_t r = 0; r < na.rows; ++r) {
                std::fill(row.begin(), row.end(), 0);
                for (int64_t k = 0; k < na.columns; ++k)
                    for (int64_t j = 0; j < nb.columns; ++j)
                        row[static_cast<size_t>(j)] +=
                            na.at[static_cast<size_t>(r * na.columns + k)] * nb.at[static_cast<size_t>(k * nb.columns + j)];
                for (int64_t j = 0; j < nb.columns; ++j) {
                    const int64_t at = i * md.next + j * md.pitch + r;
                    const double before = keep == 0 ? 0 : keep * element(c, mc.type, i * mc.next + j * mc.pitch + r);
                    set_element(d, md.type, at, times * row[static_cast<size_t>(j)] + before);
                }
            }
        }
    });
    return CUBLAS_STATUS_SUCCESS;
}
