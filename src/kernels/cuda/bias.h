// A bias, with a rectifier after it, for implementations that cannot do it in the same pass.
#pragma once

#include "kernels/cuda/device.h"
#include "model/op.h"

namespace convoy::cuda {

// Whether start_bias can do what follows a bias.
bool can_follow_bias(const UnaryOp& op);
// Starts y = activation(y + bias[c]) in place, or activation(y) without a bias. `y` is [N, C, ..], plain or channels-last; `bias` of the wide type.
void start_bias(const Device& device, const Operand& y, const void* bias, const UnaryOp* activation);

}  // namespace convoy::cuda
