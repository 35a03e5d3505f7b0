// The parts of a report, each made from what was read. Internal to this folder.
#pragma once

#include <vector>

#include "base/trace.h"
#include "report/report_data.h"

namespace convoy {

// Curves over steps from the lines of metrics: loss, accuracy and other scores, throughput, learning rate. Those without a point are left out.
std::vector<Curve> curves_of(const std::vector<Json>& metrics);

// One step (the last that was traced) of one or several traces; of many ranks a few.
struct NamedTrace {
    std::string name;
    const Trace* trace;
    std::vector<std::pair<int64_t, int64_t>> counts;  // for how many ranks a rank stands; 1 where nothing is said
};
std::optional<Timeline> timeline_of(const std::vector<NamedTrace>& traces);

// How the compute queue of a rank spends the step of `span_us`.
StepParts parts_of(const std::vector<const TraceEvent*>& events_of_rank, double begin_us, double span_us);

std::vector<Comparison::Layer> layers_compared(const Trace& measured, const Trace& predicted);

// `memory` as memory.json; `ranks` the ranks of placement.json, or the classes of ranks of a simulation.
std::optional<MemoryView> memory_of(const Json& memory, const Json& ranks);

std::optional<PlanView> plan_of(const Json& placement);

std::optional<Scaling> scaling_of(const Json& simulation);

}  // namespace convoy
