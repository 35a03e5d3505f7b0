// Whether a plan computes what one process computes. The first rank also runs the whole by itself, in float64 on the reference, and tells the others, who compare
// their own parts with that: after every step that is looked at, each activation, gradient, parameter and optimizer state.
//
// In float64 the real executor runs the plan's program. In a narrower type rounding would drown what is looked for, so the program is checked
// instruction by instruction on the true numbers (check.h): the kernels within what their type allows, and what the traffic brings, in float64,
// within what float64 allows.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "exec/session.h"

namespace convoy {

// How far a tensor was from what it should be.
struct Deviation {
    std::string layer;
    std::string what;  // "forward: conv 3x3 pad 1", "parameter conv1.weight"
    // ||found - true|| of the rank's part / max(||true|| of the whole tensor, 1e-3 of the norm of all tensors of its kind), where the kinds are the
    // parameters' gradients, the parameters and each kind of optimizer state.
    double error = 0;
    double limit = 0;
    Rank rank = 0;
    int step = 0;  // from 1

    // In units of what is allowed; above 1 is a failure.
    double severity() const { return error / limit; }
};

struct PlanCheck {
    std::vector<Deviation> layers;  // the worst (by severity) of every layer over all ranks and steps, the worst layer first
    int64_t compared = 0;           // tensors (parts of them) that were compared, on all ranks together
    double largest = 0;             // error of any of them, whatever was allowed: not always that of the worst

    bool pass() const { return !layers.empty() && layers.front().severity() <= 1; }
    double max_error() const { return largest; }
};

struct PlanCheckOptions {
    SessionOptions session;  // backend, dtype, threads, seed, plan and link
    int steps = 3;
    int one_process_threads = 1;  // of the first rank, while the others wait
    int64_t available_bytes = 0;  // memory of this machine that the check may use; 0: not known
    // The inputs of a step (from 0) as whole tensors, f64 or i32; the same on every rank.
    std::function<std::map<std::string, Tensor>(int step)> feeds;
};

// All ranks of the link must call it; all get the same result. `graph` is a training graph. Error, before anything large is allocated, when a machine has too little
// memory for its ranks.
PlanCheck check_plan(const Graph& graph, const PlanCheckOptions& options);

// What an instruction computed in this type may be off by, on true inputs.
double allowed_error(DType dtype);

}  // namespace convoy
