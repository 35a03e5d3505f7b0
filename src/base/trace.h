// Timelines: one format for measured and simulated ones, as plain values and as a file that Chrome's tracing page, Perfetto and speedscope open.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json_fwd.h"

namespace convoy {

// Something that ran, on one lane of one rank. Times are in microseconds from the start of the trace, which is one moment for all ranks.
struct TraceEvent {
    std::string layer;  // "layer1.0.conv1"
    std::string what;   // "conv 3x3 pad 1"
    std::string phase;  // forward, backward, update; or another word for what is no part of a step
    int rank = 0;
    int queue = 0;  // an index into Trace::queues
    int64_t step = 0;
    double begin_us = 0, duration_us = 0;
    double flops = 0;   // operations
    int64_t bytes = 0;  // that must move: every operand once
    int64_t sent = 0;   // of those, to other ranks
    bool operator==(const TraceEvent&) const = default;
};

struct Trace {
    std::vector<std::string> queues;  // their names: the lanes of every rank
    std::vector<TraceEvent> events;
    bool operator==(const Trace&) const = default;
};

// In Chrome's trace format: ranks are processes, queues are threads, each with its name.
Json chrome_trace(const Trace& trace);
// The inverse. Error, naming `where` and the event, when `json` is no trace of ours.
Trace trace_from_chrome(const Json& json, const std::string& where = "trace");

}  // namespace convoy
