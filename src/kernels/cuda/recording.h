// Kernels recorded as a CUDA graph.
#pragma once

#include <memory>
#include <span>

#include "kernels/cuda/device.h"

namespace convoy::cuda {

// One kernel that starts all of these together, in order. They must have run before, and outlive it.
std::unique_ptr<Kernel> record(Device& device, std::span<Kernel* const> kernels);

}  // namespace convoy::cuda
