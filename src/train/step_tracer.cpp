#include "train/step_tracer.h"

#include <algorithm>

namespace convoy {

namespace {
constexpr int64_t kUntraced = 2;
}

StepTracer::StepTracer(Link* link, int64_t wanted, const Range& range)
    : link_(link),
      begin_(std::max(range.first_step, std::min(range.first_step + kUntraced, range.total_steps - wanted))),
      end_(std::min(begin_ + wanted, range.total_steps)) {}

TraceLog* StepTracer::log_for(int64_t step) {
    if (step < begin_ || step >= end_) return nullptr;
    if (!log_) log_.emplace(link_);
    return &*log_;
}

std::optional<Trace> StepTracer::take(int64_t steps_done, bool now) {
    if (!log_ || (steps_done < end_ && !now)) return std::nullopt;
    Trace trace = log_->all();
    log_.reset();
    end_ = begin_;
    return trace;
}

}  // namespace convoy
