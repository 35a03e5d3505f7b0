// Errors of NCCL and of CUDA's runtime, as Errors whose text names the call; and what NCCL calls our types.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "comm/collective.h"

namespace convoy {

// Error "cudaStreamCreate: out of memory" unless the call succeeded.
void check_cuda(cudaError_t status, const char* call);
// The same of NCCL, with what it says of the cause. A call that is under way has not failed.
void check_nccl(ncclResult_t status, const char* call);
// What has gone wrong, in NCCL's words.
std::string nccl_text(ncclResult_t status);

ncclDataType_t nccl_type(DType dtype);
ncclRedOp_t nccl_op(ReduceOp op);

}  // namespace convoy
