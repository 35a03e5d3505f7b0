// `--plan auto`: the plan is found on the spot, by the process that leads, and said in a few lines.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "app/planning.h"
#include "model/graph.h"
#include "plan/search.h"

namespace convoy {

inline bool is_auto(const std::string& plan) { return plan == "auto"; }

// The machine to plan for, and the target that programs for it are compiled for.
struct PlanningMachine {
    Machine machine;
    std::string description;  // "machine v100"
    std::unique_ptr<MachineTarget> target;
};
// Where a profile of this machine is looked for when --machine does not name one.
std::filesystem::path profile_file();
// The machine that was named; or this one, as profile_file() describes it; or, when there is none, a stated default. `threads` of a rank.
PlanningMachine planning_machine(const MachineOptions& options, int threads);

struct AutoPlan {
    Plan plan;
    std::string words;  // a few lines for a person
};
// The plan for a training graph whose step has `batch` samples. Error when nothing fits.
AutoPlan auto_plan(const Graph& graph, int64_t batch, const PlanningMachine& on, const SearchOptions& options);

}  // namespace convoy
