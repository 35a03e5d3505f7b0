#include "kernels/cuda/status.h"

#include <array>

namespace convoy::cuda {

namespace {

void fail_for(bool memory, const std::string& text) {
    if (memory) throw OutOfMemory(text);
    throw Error(text);
}

// Whether what a library met was too little memory, which its own status may not say. An error that is reported is not reported again by the next call.
bool lacked_memory() { return cudaGetLastError() == cudaErrorMemoryAllocation; }

}  // namespace

void check(cudaError_t status, const char* call) {
    if (status == cudaSuccess) return;
    cudaGetLastError();
    fail_for(status == cudaErrorMemoryAllocation, fmt::format("{}: {} ({})", call, cudaGetErrorString(status), cudaGetErrorName(status)));
}

void check(cudnnStatus_t status, const char* call) {
    if (status == CUDNN_STATUS_SUCCESS) return;
    const bool memory = lacked_memory() || status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
                        status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
    std::array<char, 512> detail{};
    cudnnGetLastErrorString(detail.data(), detail.size());
    fail_for(memory, fmt::format("{}: {} ({})", call, cudnnGetErrorString(status), detail.data()));
}

void check(cublasStatus_t status, const char* call) {
    if (status == CUBLAS_STATUS_SUCCESS) return;
    fail_for(lacked_memory() || status == CUBLAS_STATUS_ALLOC_FAILED, fmt::format("{}: {}", call, cublasLtGetStatusString(status)));
}

}  // namespace convoy::cuda
