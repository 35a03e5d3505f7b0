// Kernels timed one by one on the device.
#pragma once

#include <span>
#include <vector>

#include "kernels/cuda/device.h"

namespace convoy::cuda {

// As HasDeviceClock says.
std::vector<double> time_each(Device& device, std::span<Kernel* const> kernels, const StepContext& context);

}  // namespace convoy::cuda
