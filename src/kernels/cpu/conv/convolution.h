// The convolution algorithms as one implementation of the cpu backend.
#pragma once

#include <memory>
#include <vector>

#include "kernels/cpu/conv/algorithm.h"

namespace convoy::cpu {

// All of them.
const Implementation& convolutions();
// Some of them: for tests and measurements.
std::unique_ptr<Implementation> make_convolutions(std::vector<const ConvAlgorithm*> algorithms);

}  // namespace convoy::cpu
