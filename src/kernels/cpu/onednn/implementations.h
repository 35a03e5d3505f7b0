// The implementations that oneDNN backs.
#pragma once

#include "kernels/cpu/implementation.h"

namespace convoy::cpu {

const Implementation& onednn_linear();

}  // namespace convoy::cpu
