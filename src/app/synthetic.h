// Inputs for a training graph that come from no dataset: for commands that look at how a step is computed, not at what is learned.
#pragma once

#include <map>
#include <string>

#include "model/graph.h"
#include "tensor/tensor.h"

namespace convoy {

struct SyntheticFeedOptions {
    int64_t classes = 1;
    double lr = 0.01;
    uint64_t seed = 1;
    int step = 0;  // from 0; every step has other numbers
};

// Every input of the graph by name, as a whole tensor: normal numbers in f64, labels in i32, the hyper-parameters.
std::map<std::string, Tensor> synthetic_feeds(const Graph& graph, const SyntheticFeedOptions& options);

}  // namespace convoy
