// The options of `train` as changes to a configuration: a new run applies them to the defaults, a resumed one to what the run began with.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/planning.h"
#include "app/ranks.h"
#include "app/tuning.h"
#include "train/config.h"

namespace convoy {

class Option;
class Parser;

struct TrainArguments {
    CommonOptions common;
    RankOptions ranks;
    TuningArguments tuning;
    MachineOptions machine;  // that a plan is found for
    std::string model, run_dir, resume;
    TrainConfig values;  // what was given; fields that were not are meaningless
    std::string optimizer = "momentum", schedule = "constant";
    int64_t train_samples = 0, test_samples = 0;
    bool no_validation = false, no_dropout = false, strict = false;
    bool tensorboard = false;
    std::string trace;  // a file; empty: none
    int64_t trace_steps = 3;
    const Option* resume_option = nullptr;

    // In the order in which they are to be applied; those whose option was given.
    std::vector<std::pair<const Option*, std::function<void(TrainConfig&)>>> changes;
    // Options that would do nothing beside the others, and what to say of them when they were given: nothing where they do something.
    std::vector<std::pair<const Option*, std::function<std::string(const TrainConfig&)>>> idle;
};

std::shared_ptr<TrainArguments> add_train_options(Parser& parser);

bool resumes(const TrainArguments& arguments);
// The directory to go on in. UsageError when none was named.
std::string resumed_directory(const TrainArguments& arguments);
// Changes what the command line says; what it does not say stays. A resumed run keeps its plan while the number of ranks stays.
void apply(const TrainArguments& arguments, const Ranks& ranks, TrainConfig& config);
// The configuration of a new run. The learning rate, unless given, is one that usually works with the optimizer.
TrainConfig new_config(const TrainArguments& arguments, const Ranks& ranks);

}  // namespace convoy
