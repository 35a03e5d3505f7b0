// Errors of the CUDA runtime and of the libraries on top of it, as Errors whose text names the call.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

namespace convoy::cuda {

// Error "cudaMalloc: out of memory" unless the call succeeded.
void check(cudaError_t status, const char* call);
void check(cudnnStatus_t status, const char* call);
void check(cublasStatus_t status, const char* call);

}  // namespace convoy::cuda
