// Writing the step's context into the device's memory.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/backend.h"

namespace convoy::cuda {

// Starts a write of `context`, by value, to `where` on the device.
void start_context_write(StepContext* where, const StepContext& context, cudaStream_t stream);

}  // namespace convoy::cuda
