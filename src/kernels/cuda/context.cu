#include "kernels/cuda/context.h"

#include "kernels/cuda/launch.cuh"

namespace convoy::cuda {

namespace {

__global__ void write_context(StepContext* where, StepContext context) { *where = context; }

}  // namespace

void start_context_write(StepContext* where, const StepContext& context, cudaStream_t stream) {
    launch_sharing(stream, 0, write_context, 1, 1, where, context);
}

}  // namespace convoy::cuda
