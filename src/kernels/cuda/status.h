// Errors of the CUDA runtime and of the libraries on top of it, as Errors whose text names the call.
#pragma once

#include <string>

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include "base/error.h"

namespace convoy::cuda {

// There was too little memory: another time the same call may succeed.
class OutOfMemory : public Error {
  public:
    using Error::Error;
};

// Error "cudaMalloc: out of memory" unless the call succeeded.
void check(cudaError_t status, const char* call);
void check(cudnnStatus_t status, const char* call);
void check(cublasStatus_t status, const char* call);

// Why ways of doing something were passed over.
struct Failures {
    std::string last;         // empty: there was none
    bool for_memory = false;  // any: what was chosen instead holds for now only
    void add(const Error& error) {
        last = error.what();
        for_memory = for_memory || dynamic_cast<const OutOfMemory*>(&error);
    }
};

}  // namespace convoy::cuda
