// Plans in a word: "sample:4", "sample:2,height:2", "channel:4@x", "channel:2,filter:2@w", or a preset. One grid for all layers, every layer split in
// the same way as far as it can follow.
//
//     sample, depth, height, width    activations are split along that dim, weights replicated
//     channel:P@x                     weights split by input channels, the output is summed (stationary-x)
//     channel:P@y                     weights split by filters, the input is gathered (stationary-y)
//     channel:A,filter:B@w            both (stationary-w)
//                                     grouped convolutions are split by groups instead, whatever the method
//     data, spatial, hybrid-fc, zero  presets for a number of ranks
#pragma once

#include <string>
#include <vector>

#include "model/graph.h"
#include "program/plan.h"

namespace convoy {

// A layer that could not follow a uniform plan along an axis: it, or a tensor of it, is replicated there.
struct Unfollowed {
    std::string layer, axis, reason;
};

struct UniformPlan {
    Plan plan;
    std::vector<Unfollowed> unfollowed;
};

// The plan for a graph (of any mode). `ranks` may be 0 for a spec that says how many it needs. Error says what is wrong with the spec, or with the number of ranks.
UniformPlan plan_from_spec(const std::string& spec, int ranks, const Graph& graph);

// How many ranks a plan uses: one more than the highest.
int ranks_of(const Plan& plan);

}  // namespace convoy
