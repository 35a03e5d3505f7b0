// Traces some early steps of a run, on all its ranks. Internal to this folder.
#pragma once

#include <optional>

#include "exec/trace_log.h"

namespace convoy {

class StepTracer {
  public:
    struct Range {
        int64_t first_step, total_steps;  // of this process; of the run
    };
    // `wanted` steps, after two that are not traced where there are enough: libraries load what they need when they first run.
    StepTracer(Link* link, int64_t wanted, const Range& range);

    // Where this step is to be written down; null: nowhere. Collective for the first of them.
    TraceLog* log_for(int64_t step);
    // After the last traced step, or with `now` at once if any was: all ranks' traces, once. Collective then.
    std::optional<Trace> take(int64_t steps_done, bool now = false);

  private:
    Link* link_;
    int64_t begin_, end_;
    std::optional<TraceLog> log_;
};

}  // namespace convoy
