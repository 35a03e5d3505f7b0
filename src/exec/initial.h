// The first values of states: a function of the seed, the state's name and the element's index alone, so that every rank makes its own part of them.
#pragma once

#include "model/graph.h"
#include "tensor/tensor.h"

namespace convoy {

// A box of the state. What the initializer reads from a file is read from there; Error when it cannot be.
Tensor initial_value(const StateSpec& spec, DType dtype, uint64_t seed, const Box& box);

}  // namespace convoy
