#include "exec/trace_log.h"

#include "base/error.h"
#include "base/json.h"
#include "exec/share.h"
#include "program/program.h"

namespace convoy {

Trace trace_of(std::vector<TraceEvent> events) {
    Trace trace;
    for (size_t q = 0; q < kQueues; ++q) trace.queues.emplace_back(name_of(static_cast<Queue>(q)));
    trace.events = std::move(events);
    return trace;
}

TraceLog::TraceLog(Link* link) : link_(link), origin_(Clock::now()) {
    if (!link) return;
    const auto mine = std::chrono::duration_cast<std::chrono::nanoseconds>(origin_.time_since_epoch()).count();
    const std::string first = share_text(link, 0, fmt::format("{} {}", mine, machine_name()));
    const size_t space = first.find(' ');
    if (first.substr(space + 1) == machine_name())
        origin_ = Clock::time_point(std::chrono::nanoseconds(std::stoll(first.substr(0, space))));
    else
        origin_ = Clock::now();
}

void TraceLog::add(TraceEvent event, Clock::time_point begin, Clock::time_point end) {
    const auto microseconds = [](Clock::duration d) { return std::chrono::duration<double, std::micro>(d).count(); };
    event.rank = link_ ? link_->rank() : 0;
    event.begin_us = microseconds(begin - origin_);
    event.duration_us = microseconds(end - begin);
    events_.push_back(std::move(event));
}

Trace TraceLog::own() const { return trace_of(events_); }

Trace TraceLog::all() const {
    if (!link_ || link_->size() == 1) return own();
    Trace trace = own();
    const std::string mine = chrome_trace(trace).dump();
    trace.events.clear();
    for (Rank rank = 0; rank < link_->size(); ++rank) {
        const Trace part = trace_from_chrome(Json::parse(share_text(link_, rank, rank == link_->rank() ? mine : "")));
        trace.events.insert(trace.events.end(), part.events.begin(), part.events.end());
    }
    return trace;
}

}  // namespace convoy
