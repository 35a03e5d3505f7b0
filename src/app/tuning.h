// Tuning as commands use it: the options, this machine's cache, and what people are told.
#pragma once

#include <string>

#include "app/output.h"
#include "tune/tuner.h"

namespace convoy {

class Parser;

struct TuningArguments {
    bool tune = false;
    std::string numerics = "fast";
    int64_t workspace_limit = -1;  // none
};
// --numerics and --workspace-limit.
void add_limits(Parser& parser, TuningArguments& arguments);
// Those and --tune.
void add_tuning(Parser& parser, TuningArguments& arguments);
Limits limits_of(const TuningArguments& arguments);

// Tunes the step for this machine, with the user's cache; says on standard error how far it is. All ranks call it together.
Tuning tune_here(const Graph& graph, const SessionOptions& session);
// "tuned: 12.3 ms a step instead of 15.1 (-18.5 %); 120 kernels measured, 14 known, in 25 s"
std::string summary_of(const Tuning& tuning);

// The time that convolutions took in a step, against the best that was measured for each of them alone.
struct ConvTimes {
    double in_step = 0, best_alone = 0;  // seconds
    int count = 0;
};
// `seconds` has the time of each instruction. Those of which nothing was measured are left out.
ConvTimes conv_times(const Program& program, const std::vector<double>& seconds, const CostTable& table);

}  // namespace convoy
