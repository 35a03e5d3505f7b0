// What a plan makes of a model, from the programs of all its ranks: where things lie, what travels, what memory it takes. Nothing is run.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "program/compile.h"

namespace convoy {

struct LayerReport {
    std::string layer, kind;                           // "conv1", "conv 5x5 pad 2 + bias"
    std::string input, weight, output;                 // in words: "samples/2 height/2 +halo"; "" where there is none
    Shape local;                                       // of the output on the first rank of its grid
    Shape smallest;                                    // on the rank with least of it; as `local` where all have the same
    int64_t activation_bytes = 0, gradient_bytes = 0;  // sent in a step by the rank that sends most
};

struct PlanReport {
    std::vector<Grid> grids;
    std::vector<LayerReport> layers;  // in the order of the forward pass
    struct OfRank {
        int64_t arena_bytes = 0, state_bytes = 0, activation_bytes = 0, gradient_bytes = 0;
    };
    std::vector<OfRank> ranks;
    OfRank one;  // one process alone
};

// `graph` is a training graph. Error when the plan cannot be done.
PlanReport report_plan(const Graph& graph, const Plan& plan, const Target& target, DType dtype);

Json to_json(const PlanReport& report);

// "sample:2, height:2 (ranks 0 to 3)"
std::string words_of(const Grid& grid);

}  // namespace convoy
