#include "base/trace.h"

#include <set>
#include <utility>

#include "base/error.h"
#include "base/json.h"

namespace convoy {

namespace {

Json metadata(const char* name, int rank, int queue, const Json& args) {
    return {{"name", name}, {"ph", "M"}, {"pid", rank}, {"tid", queue}, {"args", args}};
}

TraceEvent event_from(const Json& json) {
    const Json& args = json.at("args");
    return {.layer = args.at("layer"),
            .what = args.at("what"),
            .phase = json.at("cat"),
            .rank = json.at("pid"),
            .queue = json.at("tid"),
            .step = args.at("step"),
            .begin_us = json.at("ts"),
            .duration_us = json.at("dur"),
            .flops = args.at("flops"),
            .bytes = args.at("bytes"),
            .sent = args.at("sent")};
}

}  // namespace

Json chrome_trace(const Trace& trace) {
    Json list = Json::array();
    std::set<int> ranks;
    std::set<std::pair<int, int>> lanes;
    for (const TraceEvent& e : trace.events) {
        CONVOY_CHECK(e.queue >= 0 && static_cast<size_t>(e.queue) < trace.queues.size(), "an event on queue {} of {}", e.queue,
                     trace.queues.size());
        if (ranks.insert(e.rank).second) {
            list.push_back(metadata("process_name", e.rank, 0, {{"name", fmt::format("rank {}", e.rank)}}));
            list.push_back(metadata("process_sort_index", e.rank, 0, {{"sort_index", e.rank}}));
        }
        if (lanes.emplace(e.rank, e.queue).second) {
            list.push_back(metadata("thread_name", e.rank, e.queue, {{"name", trace.queues[static_cast<size_t>(e.queue)]}}));
            list.push_back(metadata("thread_sort_index", e.rank, e.queue, {{"sort_index", e.queue}}));
        }
        list.push_back(
            {{"name", e.layer.empty() ? e.what : e.layer + ": " + e.what},
             {"cat", e.phase},
             {"ph", "X"},
             {"pid", e.rank},
             {"tid", e.queue},
             {"ts", e.begin_us},
             {"dur", e.duration_us},
             {"args", {{"layer", e.layer}, {"what", e.what}, {"step", e.step}, {"flops", e.flops}, {"bytes", e.bytes}, {"sent", e.sent}}}});
    }
    return {{"displayTimeUnit", "ms"}, {"queues", trace.queues}, {"traceEvents", list}};
}

Trace trace_from_chrome(const Json& json, const std::string& where) {
    Trace trace;
    int64_t index = -1;
    try {
        trace.queues = json.at("queues").get<std::vector<std::string>>();
        const Json& events = json.at("traceEvents");
        require(events.is_array(), "\"traceEvents\" is no list");
        for (const Json& event : events) {
            ++index;
            if (event.at("ph") != "X") continue;
            trace.events.push_back(event_from(event));
            const TraceEvent& e = trace.events.back();
            require(e.queue >= 0 && static_cast<size_t>(e.queue) < trace.queues.size(), "it is on queue {}, of {}", e.queue,
                    trace.queues.size());
        }
    } catch (const std::exception& error) {
        fail("{}: expected a trace of steps{}: {}", where, index < 0 ? "" : fmt::format(", but event {} is none", index), error.what());
    }
    return trace;
}

}  // namespace convoy
