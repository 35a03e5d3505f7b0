// In which type own kernels read their inputs. They know two: that of activations, and a wide one for parameters and what is summed. In bf16 these differ, and a
// graph may hold one where a kernel reads the other: a stored parameter times an activation, the gradient of a parameter that was used as an activation.
#pragma once

#include <vector>

#include "program/problem.h"

namespace convoy::cuda {

// The type of every input of the problem as its kernel reads it: what a candidate asks for, so that others are copied into it.
std::vector<DType> read_types(const Problem& problem);

// Whether what stays inside a problem of several steps is of the type that its kernel computes in: a sum takes the kind of its first term, which may be a stored
// parameter. Ops for which it is not are computed one by one.
bool is_of_one_type(const Problem& problem);

}  // namespace convoy::cuda
