// What a run leaves in its directory for a report about it, beside its metrics: where the plan put things, and memory over the step.
#pragma once

#include <filesystem>

#include "exec/session.h"
#include "program/plan_spec.h"
#include "train/config.h"

namespace convoy {

struct RunRecord {
    const TrainConfig& config;
    const Graph& graph;      // the training step of a whole batch
    const Program& program;  // of this rank
    const SessionOptions& session;
    const std::vector<Unfollowed>& unfollowed;
};

// Writes placement.json (as `plan show --json` prints it) and memory.json (of the first rank). All ranks call it together: each tells about its own
// program, and the first writes.
void write_run_record(const std::filesystem::path& run_dir, const RunRecord& record);

}  // namespace convoy
