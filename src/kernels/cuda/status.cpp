#include "kernels/cuda/status.h"

#include <array>

#include "base/error.h"

namespace convoy::cuda {

void check(cudaError_t status, const char* call) {
    if (status == cudaSuccess) return;
    cudaGetLastError();  // an error that is reported here is not reported again by the next call
    fail("{}: {} ({})", call, cudaGetErrorString(status), cudaGetErrorName(status));
}

void check(cudnnStatus_t status, const char* call) {
    if (status == CUDNN_STATUS_SUCCESS) return;
    std::array<char, 512> detail{};
    cudnnGetLastErrorString(detail.data(), detail.size());
    fail("{}: {} ({})", call, cudnnGetErrorString(status), detail.data());
}

void check(cublasStatus_t status, const char* call) {
    require(status == CUBLAS_STATUS_SUCCESS, "{}: {}", call, cublasLtGetStatusString(status));
}

}  // namespace convoy::cuda
