#include "comm/nccl/nccl_calls.h"

#include "base/error.h"

namespace convoy {

void check_cuda(cudaError_t status, const char* call) {
    if (status == cudaSuccess) return;
    cudaGetLastError();  // an error that is reported here is not reported again by the next call
    fail("{}: {} ({})", call, cudaGetErrorString(status), cudaGetErrorName(status));
}

std::string nccl_text(ncclResult_t status) {
    const char* const detail = ncclGetLastError(nullptr);
    std::string cause = detail ? detail : "";
    while (!cause.empty() && (cause.back() == '\n' || cause.back() == ' ')) cause.pop_back();
    return fmt::format("{}{}", ncclGetErrorString(status), cause.empty() ? "" : fmt::format(" ({})", cause));
}

void check_nccl(ncclResult_t status, const char* call) {
    if (status != ncclSuccess && status != ncclInProgress) fail("{}: {}", call, nccl_text(status));
}

ncclDataType_t nccl_type(DType dtype) {
    switch (dtype) {
        case DType::f64: return ncclFloat64;
        case DType::f32: return ncclFloat32;
        case DType::bf16: return ncclBfloat16;
        case DType::i64: return ncclInt64;
        case DType::i32: return ncclInt32;
        case DType::u8: return ncclUint8;
        default: fail("NCCL has no type for {}", name_of(dtype));
    }
}

ncclRedOp_t nccl_op(ReduceOp op) {
    switch (op) {
        case ReduceOp::Sum: return ncclSum;
        case ReduceOp::Max: return ncclMax;
        case ReduceOp::Min: return ncclMin;
    }
    CONVOY_CHECK(false, "an unknown way to reduce");
}

}  // namespace convoy
