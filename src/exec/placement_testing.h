// One process against many ranks, for tests: the same graph, the same inputs, in float64.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "exec/session.h"
#include "model/graph.h"
#include "program/plan.h"
#include "tensor/tensor.h"

namespace convoy {

using Feeds = std::map<std::string, Tensor>;

// Numbers for every input of the graph; class labels below `classes`.
Feeds feeds_for(const Graph& graph, int64_t classes);

// Outputs and states of one process after some steps.
struct Truth {
    std::map<std::string, Tensor> outputs, states;
};
Truth one_process(const Graph& graph, const Feeds& feeds, int steps);

// The largest relative difference of any output or state, with its name.
struct Worst {
    double error = 0;
    std::string name;
    void see(double e, const std::string& n) {
        if (!(e <= error)) error = e, name = n;
    }
};

// How often, and whether ranks do their collectives themselves (Link::fills_machine).
struct Way {
    int steps = 1;
    bool fills_machine = false;
};
// Runs the plan with ranks that are threads; each shows its executor and session when its steps are over. State is read by all ranks together.
using ShowRank = std::function<void(Rank, Executor&, Session&)>;
void on_ranks(const Graph& graph, const Plan& plan, const Feeds& feeds, const Way& way, const ShowRank& show);

// Runs the plan so, and compares every rank's part of every output, and every state.
Worst compare(const Graph& graph, const Plan& plan, const Feeds& feeds, const Truth& truth, const Way& way);

}  // namespace convoy
