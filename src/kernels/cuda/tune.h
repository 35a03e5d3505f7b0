// The fastest engine for a graph of operations, by measurement on the memory it will run on.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "kernels/cuda/cudnn_graph.h"

namespace convoy::cuda {

struct TuneRequest {
    Descriptor graph;
    std::string problem;  // what it computes, in words: the key under which the choice is remembered
    EnginePolicy policy;
    std::vector<std::pair<int64_t, void*>> memory;  // by uid; outputs are written
    void* workspace;
    int64_t workspace_bytes;  // an engine that needs more is not taken
    double hopeless = 0;      // seconds: an engine that takes longer is given up after a run or two, and not remembered (0: there are none)
};
// Nothing when the library has no engine for it. What went wrong with engines is added to `failures`; a choice without those that memory lacked for is not
// remembered.
std::shared_ptr<ExecutionPlan> tune(Device& device, const TuneRequest& request, Failures& failures);

// Seconds that the device takes for what `start` starts: the best of a few runs, after one that is not counted, and fewer when these took so long that others are
// hopeless (0: never).
double measure_runs(Device& device, const std::function<void()>& start, double hopeless);

// What was chosen for a problem: measured anew it might be another. Asked again in one's turn to measure (EngineCache::Turn), because another rank may have
// chosen meanwhile.
std::optional<std::string> remembered(const Device& device, const std::string& question);
void remember(const Device& device, const std::string& question, const std::string& answer);

}  // namespace convoy::cuda
