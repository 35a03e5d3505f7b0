// What the files of one instruction set give to its table, and the tables themselves. Internal to this folder.
#pragma once

#include "kernels/cpu/vector/kernels.h"

namespace convoy::cpu::vec {

const VectorKernels& kernels_base();
const VectorKernels& kernels_v3();
const VectorKernels& kernels_v4();

}  // namespace convoy::cpu::vec
