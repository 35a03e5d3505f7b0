// One op, as one rank computes it: which boxes of its inputs it reads, and the op with its numbers (padding, groups, sizes) for these boxes.
#pragma once

#include <vector>

#include "model/graph.h"
#include "tensor/box.h"

namespace convoy {

struct LocalOp {
    Op op;
    std::vector<Box> inputs;  // what it reads of each input
};

// `inputs` and `outputs` are this rank's boxes as the signature cuts them; dims that are derived are replaced by what is needed.
LocalOp localise(const Op& op, const std::vector<ValueType>& input_types, const std::vector<ValueType>& output_types,
                 std::vector<Box> inputs, const std::vector<Box>& outputs);

}  // namespace convoy
