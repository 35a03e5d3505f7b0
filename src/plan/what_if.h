// Where the architecture stands in the way of a machine: for each convolution of a plan, what grouped convolutions or more filters would make of its
// time. Not a change that computes the same: a hint for whoever designs the network.
#pragma once

#include <string>
#include <vector>

#include "plan/search.h"

namespace convoy {

struct WhatIf {
    std::string layer;
    double seconds = 0;  // of its step now, with traffic
    int groups = 1;      // as a grouped convolution of so many groups, split between ranks as groups where it is split by channels now
    double grouped_seconds = 0;
    int64_t filters = 0;                                                                       // twice as many as now
    double wider_seconds = 0;                                                                  // of a layer with twice the work
    double wider_gain() const { return seconds > 0 ? 1 - wider_seconds / (2 * seconds) : 0; }  // per operation
    double grouped_gain() const { return seconds - grouped_seconds; }
};

// The convolutions of the plan that would gain most, by seconds of a step saved, at most so many.
std::vector<WhatIf> what_if(const Graph& graph, const Plan& plan, const Machine& machine, const Target& target,
                            const SearchOptions& options, size_t most);

}  // namespace convoy
