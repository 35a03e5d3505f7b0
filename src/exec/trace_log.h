// What one rank did and when, measured against one moment that all ranks share; and the timelines of all ranks put together.
#pragma once

#include <chrono>
#include <vector>

#include "base/trace.h"
#include "exec/link.h"

namespace convoy {

// Events on the queues of programs, with their names.
Trace trace_of(std::vector<TraceEvent> events);

class TraceLog {
  public:
    using Clock = std::chrono::steady_clock;

    // Time begins now. With a link all ranks make theirs together: those on the first rank's machine take its moment, as their clocks are one; those
    // on other machines take the moment at which they hear from it.
    explicit TraceLog(Link* link = nullptr);

    // The event's rank and times are set here.
    void add(TraceEvent event, Clock::time_point begin, Clock::time_point end);

    // This rank's events.
    Trace own() const;
    // Those of all ranks, on every rank, which must all ask at the same time.
    Trace all() const;

  private:
    Link* link_;
    Clock::time_point origin_;
    std::vector<TraceEvent> events_;
};

}  // namespace convoy
