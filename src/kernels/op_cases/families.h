// The cases of single ops, family by family; each is a file here.
#pragma once

#include <vector>

#include "kernels/op_cases.h"

namespace convoy::op_testing {

std::vector<NamedCase> layer_cases();
std::vector<NamedCase> norm_cases();
std::vector<NamedCase> elementwise_cases();
std::vector<NamedCase> training_cases();

}  // namespace convoy::op_testing
