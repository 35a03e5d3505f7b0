// Fully connected layers: products of matrices by cuBLASLt. In its column-major eyes our row-major matrices are their transposes, so a product
// c[m, n] of ours is the library's c[n, m], with the operands in the other order.
#include "base/error.h"
#include "kernels/cuda/family.h"

namespace convoy::cuda {

namespace {

// c[m, n] = a * b, a being [m, k] or, transposed, [k, m] in memory; likewise b.
struct Product {
    int64_t m, n, k;
    Operand a, b, c;
    bool transpose_a = false, transpose_b = false;
};

Product product_of(const KernelRequest& request) {
    const auto& step = request.problem.steps[0];
    const Operand &first = operand(request, step.inputs[0]), &second = operand(request, step.inputs[1]),
                  &result = operand(request, step.outputs[0]);
    const int64_t m = result.desc.shape[0], n = result.desc.shape[1];
    if (std::holds_alternative<LinearOp>(step.op)) return {m, n, first.desc.shape[1], first, second, result, false, true};
    if (std::holds_alternative<LinearGradInputOp>(step.op)) return {m, n, first.desc.shape[1], first, second, result};
    return {m, n, first.desc.shape[0], second, first, result, true, false};  // dw = dy^T x
}

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

class Matmul : public Kernel {
  public:
    Matmul(Device& device, const Product& p, DType compute, void* workspace, size_t workspace_bytes)
        : device_(device), p_(p), wide_(compute == DType::f64), workspace_(workspace), workspace_bytes_(workspace_bytes) {
        const cudaDataType scale = wide_ ? CUDA_R_64F : CUDA_R_32F;
        check(cublasLtMatmulDescCreate(&operation_, library_compute(compute), scale), "cublasLtMatmulDescCreate");
        // The library's first operand is our b.
        const cublasOperation_t first = p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N, second = p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
        set(CUBLASLT_MATMUL_DESC_TRANSA, first);
        set(CUBLASLT_MATMUL_DESC_TRANSB, second);
        matrix(&first_, p.b);
        matrix(&second_, p.a);
        matrix(&result_, p.c);
        choose();
    }
    ~Matmul() override {
        for (cublasLtMatrixLayout_t layout : {first_, second_, result_})
            if (layout) cublasLtMatrixLayoutDestroy(layout);
        if (operation_) cublasLtMatmulDescDestroy(operation_);
    }
    Matmul(const Matmul&) = delete;
    Matmul& operator=(const Matmul&) = delete;

    void run(const StepContext&) override {
        const double wide_one = 1, wide_zero = 0;
        const float one = 1, zero = 0;
        const void *const alpha = wide_ ? static_cast<const void*>(&wide_one) : &one, *const beta =
                                                                                          wide_ ? static_cast<const void*>(&wide_zero)
                                                                                                : &zero;
        check(cublasLtMatmul(device_.blas(), operation_, alpha, p_.b.data, first_, p_.a.data, second_, beta, p_.c.data, result_, p_.c.data,
                             result_, &algorithm_, workspace_, workspace_bytes_, device_.stream()),
              "cublasLtMatmul");
    }

  private:
    template <class T>
    void set(cublasLtMatmulDescAttributes_t name, const T& value) {
        check(cublasLtMatmulDescSetAttribute(operation_, name, &value, sizeof value), "cublasLtMatmulDescSetAttribute");
    }

    // A row-major matrix as the column-major transpose that it also is.
    static void matrix(cublasLtMatrixLayout_t* layout, const Operand& o) {
        const auto rows = static_cast<uint64_t>(o.desc.shape[0]), columns = static_cast<uint64_t>(o.desc.shape[1]);
        check(cublasLtMatrixLayoutCreate(layout, library_type(o.desc.dtype), columns, rows, static_cast<int64_t>(columns)),
              "cublasLtMatrixLayoutCreate");
    }

    void choose() {
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
        check(status, "cublasLtMatmulAlgoGetHeuristic");
        require(count > 0, "cuBLASLt has no way to multiply {} x {} x {} in {}", p_.m, p_.n, p_.k, name_of(p_.a.desc.dtype));
        algorithm_ = found.algo;
    }

    Device& device_;
    Product p_;
    bool wide_;
    void* workspace_;
    size_t workspace_bytes_;
    cublasLtMatmulDesc_t operation_ = nullptr;
    cublasLtMatrixLayout_t first_ = nullptr, second_ = nullptr, result_ = nullptr;
    cublasLtMatmulAlgo_t algorithm_{};
};

int64_t workspace_for(const Problem& problem) { return work_of(problem) > 1e9 ? int64_t{32} << 20 : int64_t{4} << 20; }

bool accepts(const Problem& p) { return steps_are<LinearOp>(p) || steps_are<LinearGradInputOp>(p) || steps_are<LinearGradWeightOp>(p); }

std::vector<Candidate> candidates(const Problem& p) {
    Candidate candidate = only_plain(p, {}, workspace_for(p))[0];
    if (p.compute == DType::bf16) candidate.input_types.assign(static_cast<size_t>(p.inputs), DType::bf16);
    const double rate = p.compute == DType::bf16 ? 400e12 : p.compute == DType::tf32 ? 200e12 : 40e12;
    candidate.seconds = memory_seconds(p) + work_of(p) / rate;
    return {candidate};
}

std::unique_ptr<Kernel> prepare(const KernelRequest& request, Device& device) {
    const Product p = product_of(request);
    if (p.m * p.n == 0) return make_kernel([](const StepContext&) {});
    if (p.k == 0)
        return make_kernel([&device, c = p.c](const StepContext&) {
            const auto bytes = static_cast<size_t>(numel(c.desc.shape) * size_of(c.desc.dtype));
            check(cudaMemsetAsync(c.data, 0, bytes, device.stream()), "cudaMemsetAsync");
        });
    // The library wants its workspace at a multiple of 256.
    const auto at = reinterpret_cast<uintptr_t>(request.workspace), aligned = (at + 255) / 256 * 256;
    return std::make_unique<Matmul>(device, p, request.problem.compute, reinterpret_cast<void*>(aligned),
                                    static_cast<size_t>(workspace_for(request.problem)) - (aligned - at));
}

}  // namespace

Family linear_family() { return {"linear", {{accepts, candidates, prepare}}}; }

}  // namespace convoy::cuda
