// Trace events: one format for measured and simulated timelines. Times are in microseconds from the start of the trace.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace convoy {

struct TraceEvent {
    std::string name;      // what ran, e.g. "conv layer1.0.conv1"
    std::string category;  // phase: forward, backward, update
    int rank = 0;
    int queue = 0;
    double begin_us = 0, duration_us = 0;
    double flops = 0, bytes = 0;
};

// The events in Chrome's trace format: ranks are processes, queues are threads.
Json chrome_trace(const std::vector<TraceEvent>& events);

}  // namespace convoy
