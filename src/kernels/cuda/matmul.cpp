// In the library's column-major eyes our row-major matrices are their transposes, so a product c[m, n] of ours is the library's c[n, m], with the
// operands in the other order.
#include "kernels/cuda/matmul.h"

#include "base/error.h"

namespace convoy::cuda {

namespace {

cudaDataType library_type(DType type) {
    switch (type) {
        case DType::f64: return CUDA_R_64F;
        case DType::bf16: return CUDA_R_16BF;
        default: return CUDA_R_32F;
    }
}

cublasComputeType_t library_compute(DType compute) {
    switch (compute) {
        case DType::f64: return CUBLAS_COMPUTE_64F;
        case DType::tf32: return CUBLAS_COMPUTE_32F_FAST_TF32;
        default: return CUBLAS_COMPUTE_32F;
    }
}

// The largest power of two, up to 256, that the address is a multiple of.
uint32_t alignment_of(const void* data) {
    uint32_t alignment = 256;
    while (reinterpret_cast<uintptr_t>(data) % alignment != 0) alignment /= 2;
    return alignment;
}

// A row-major matrix as the column-major transpose that it also is.
void describe(cublasLtMatrixLayout_t* layout, const Matrix& m, int64_t batch) {
    check(
        cublasLtMatrixLayoutCreate(layout, library_type(m.dtype), static_cast<uint64_t>(m.columns), static_cast<uint64_t>(m.rows), m.pitch),
        "cublasLtMatrixLayoutCreate");
    if (batch == 1) return;
    const auto count = static_cast<int32_t>(batch);
    check(cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count),
          "cublasLtMatrixLayoutSetAttribute");
    check(cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &m.next, sizeof m.next),
          "cublasLtMatrixLayoutSetAttribute");
}

}  // namespace

Matmul::Matmul(Device& device, const Product& product, DType compute, void* workspace, int64_t workspace_bytes)
    : device_(device),
      p_(product),
      wide_(compute == DType::f64),
      workspace_(workspace),
      workspace_bytes_(static_cast<size_t>(workspace_bytes)) {
    try {
        make(compute);
    } catch (...) {
        destroy();
        throw;
    }
}

Matmul::~Matmul() { destroy(); }

void Matmul::make(DType compute) {
    check(cublasLtMatmulDescCreate(&operation_, library_compute(compute), wide_ ? CUDA_R_64F : CUDA_R_32F), "cublasLtMatmulDescCreate");
    const auto set = [&](cublasLtMatmulDescAttributes_t name, const Matrix& m) {
        const cublasOperation_t how = m.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
        check(cublasLtMatmulDescSetAttribute(operation_, name, &how, sizeof how), "cublasLtMatmulDescSetAttribute");
    };
    set(CUBLASLT_MATMUL_DESC_TRANSA, p_.b);  // the library's first operand is our b
    set(CUBLASLT_MATMUL_DESC_TRANSB, p_.a);
    describe(&first_, p_.b, p_.batch);
    describe(&second_, p_.a, p_.batch);
    describe(&result_, p_.c, p_.batch);
    choose();
}

void Matmul::destroy() {
    for (cublasLtMatrixLayout_t layout : {first_, second_, result_})
        if (layout) cublasLtMatrixLayoutDestroy(layout);
    if (operation_) cublasLtMatmulDescDestroy(operation_);
}

void Matmul::start() const {
    const double wide_one = 1, wide_zero = 0;
    const float one = 1, zero = 0;
    const void* const alpha = wide_ ? static_cast<const void*>(&wide_one) : &one;
    const void* const beta = wide_ ? static_cast<const void*>(&wide_zero) : &zero;
    check(cublasLtMatmul(device_.blas(), operation_, alpha, p_.b.data, first_, p_.a.data, second_, beta, p_.c.data, result_, p_.c.data,
                         result_, &algorithm_, workspace_, workspace_bytes_, device_.stream()),
          "cublasLtMatmul");
}

void Matmul::choose() {
    cublasLtMatmulPreference_t preference = nullptr;
    check(cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t name, const auto& value) {
        check(cublasLtMatmulPreferenceSetAttribute(preference, name, &value, sizeof value), "cublasLtMatmulPreferenceSetAttribute");
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes_);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(p_.b.data));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(p_.a.data));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment_of(p_.c.data));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_of(p_.c.data));
    cublasLtMatmulHeuristicResult_t found{};
    int count = 0;
    const auto status =
        cublasLtMatmulAlgoGetHeuristic(device_.blas(), operation_, first_, second_, result_, result_, preference, 1, &found, &count);
    cublasLtMatmulPreferenceDestroy(preference);
    if (status != CUBLAS_STATUS_NOT_SUPPORTED) check(status, "cublasLtMatmulAlgoGetHeuristic");
    require(status == CUBLAS_STATUS_SUCCESS && count > 0, "cuBLASLt has no way to multiply matrices for a result of {} x {} in {}",
            p_.c.rows, p_.c.columns, name_of(p_.a.dtype));
    algorithm_ = found.algo;
    used_bytes_ = static_cast<int64_t>(found.workspaceSize);
}

}  // namespace convoy::cuda
