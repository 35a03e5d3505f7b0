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
};
struct Tuned {
    std::shared_ptr<ExecutionPlan> plan;
    double seconds;
};
// Nothing when the library has no engine for it.
std::optional<Tuned> tune(Device& device, const TuneRequest& request);
// The answer to a question about a problem, which is remembered too: measured anew it might be another.
bool remembered_choice(const Device& device, const std::string& question, const std::function<bool()>& answer);

}  // namespace convoy::cuda
