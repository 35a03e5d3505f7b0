// Which results of an op may lie where one of its inputs lies, because each element depends on that element alone.
#pragma once

#include <utility>
#include <vector>

#include "model/op.h"

namespace convoy {

// {output, input} of an op with so many inputs.
std::vector<std::pair<int, int>> in_place_of(const Op& op, int inputs);

}  // namespace convoy
