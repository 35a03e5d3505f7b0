// What an op must do, independent of how: work (operations), depth (the longest chain of dependent operations) and elements moved.
#pragma once

#include "model/graph.h"

namespace convoy {

struct Cost {
    double work = 0;   // a multiply-add counts as two operations, any other arithmetic on one element as one
    double depth = 0;  // with unlimited parallelism; sums are trees, and the products under a tree are not counted
    double moved = 0;  // elements read and written, each touched once; none for a reshape
};

Cost cost_of(const Op& op, const std::vector<ValueType>& inputs, const std::vector<ValueType>& outputs);
// The cost of a node of a graph.
Cost cost_of(const Graph& graph, const Node& node);

// Work and depth as the literature counts them for whole networks: a multiply-add is *one* operation, a reduction of k elements (pooling,
// statistics) is k - 1 operations in a tree of ceil(log2 k), taken dim by dim, and biases, activations and other elementwise work are not
// counted. A convolution thus has N*F*H'*W'*C*K*K and ceil(log2 C) + 2*ceil(log2 K); a fully connected layer of I inputs has a depth of
// ceil(log2 I). The depth of a graph is that of its longest path. LeNet-5 on one 28x28 image: 421,248 and 42.
struct WorkDepth {
    double work = 0, depth = 0;
};
WorkDepth work_depth(const Graph& graph);

}  // namespace convoy
