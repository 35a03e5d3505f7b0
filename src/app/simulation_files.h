// What a simulation leaves in a directory for a report: the step of its last point, as a run leaves that of its own (train/run_record.h).
#pragma once

#include <filesystem>

#include "plan/simulate.h"
#include "program/plan_report.h"

namespace convoy {

struct SimulatedStep {
    PlanSubject subject;
    const Graph& graph;
    const UniformPlan& plan;
    const std::vector<RankClass>& classes;
    const Simulation& simulation;  // with its timeline
};

// Makes the directory, and removes what an earlier simulation left there.
void open_simulation_directory(const std::filesystem::path& directory);
// placement.json, memory.json (of the first rank) and trace.json (of the first rank of each class).
void write_simulated_step(const std::filesystem::path& directory, const SimulatedStep& step);

}  // namespace convoy
