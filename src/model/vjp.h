// The backward rule of each op: which nodes compute the gradients of its inputs.
#pragma once

#include <vector>

#include "model/graph.h"

namespace convoy {

// One node being differentiated. A rule adds nodes to the graph and sets the gradients of those inputs that need one.
struct VjpContext {
    Graph& graph;
    const Node& node;
    const std::vector<ValueId>& dy;   // gradient of each output; kNone where nothing flows
    const std::vector<bool>& needed;  // which inputs want a gradient
    std::vector<ValueId> dx;          // the result, kNone where there is none

    ValueId in(size_t i) const { return node.inputs[i]; }
    const Shape& shape(size_t i) const { return graph.shape(node.inputs[i]); }
    ValueId add(const Op& op, const std::vector<ValueId>& inputs) { return graph.add1(op, inputs, node.layer); }
};

// Bug for ops that are not differentiated (gradients, updates, metrics).
void apply_vjp(VjpContext& context);

}  // namespace convoy
