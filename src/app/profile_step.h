// Times the instructions of training steps where they stand: in the step, with its caches and its neighbours, on one rank or on several at once.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/ranks.h"
#include "plan/cost.h"
#include "plan/machine.h"
#include "plan/measured.h"

namespace convoy {

// One step to be timed.
struct StepCase {
    std::string model;
    int64_t batch = 0;  // 0: 8
    std::string input;  // "3x64x64"; empty: the model's own
    std::string plan;   // a spec; empty: one rank
    int ranks = 1;
    int threads = 1;
};
// "resnet18:8:3x64x64": a model, its batch, its input. UsageError says what is wrong.
StepCase step_case(const std::string& text);

struct StepProfile {
    KernelTable kernels;       // every distinct instruction that is no traffic; ranks that run at the same time count as busy
    double traffic = 0;        // seconds of a step, of the rank that waits least for others
    TrafficCost traffic_cost;  // what the machine's links say of it, all together
};
// Runs the step of every rank of the case a few times, traffic apart from computations. Error when the model cannot be cut so.
StepProfile profile_step(const StepCase& which, const Machine& machine, Ranks& ranks);

}  // namespace convoy
