// Convolutions with pointwise operations behind them, as plain loops.
#pragma once

#include <map>

#include "kernels/cuda/stand_in/asked.h"

namespace stand_in::cudnn {

using Memory = std::map<int64_t, void*>;  // by name

struct Arithmetic {
    bool to_tf32;  // whether operands of f32 are rounded
    bool right;
};
void compute(const Asked& asked, const Arithmetic& how, const Memory& memory);

}  // namespace stand_in::cudnn
