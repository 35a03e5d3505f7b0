// The best choice for every layer on one grid, by dynamic programming over the graph in its order. What is remembered of the layers behind is how the
// activations lie that later ops still read: one in a chain, two inside a residual block. Exact for the sum of costs as long as nothing had to be
// left out; a graph with many open activations (dense blocks, skips of a U-Net) keeps the best few thousand ways only, and says so.
#pragma once

#include <vector>

#include "plan/search_cost.h"

namespace convoy {

struct DpLimits {
    size_t choices = 96;   // of one op that are looked at, the cheapest by themselves
    size_t states = 3000;  // that are carried from op to op
};

struct Assignment {
    std::vector<Choice> chosen;  // for every op of the space
    StepCost cost;
    bool exact = true;  // nothing was left out
};

Assignment best_assignment(const SearchSpace& space, GridCosts& costs, const SearchWeights& weights, const DpLimits& limits = {});

// Every combination of choices; for tests of the above on small graphs. Error when there are more than a few million.
Assignment best_by_trying_all(const SearchSpace& space, GridCosts& costs, const SearchWeights& weights);

}  // namespace convoy
