#include "base/trace.h"

namespace convoy {

Json chrome_trace(const std::vector<TraceEvent>& events) {
    Json list = Json::array();
    for (const auto& e : events) {
        list.push_back({{"name", e.name},
                        {"cat", e.category},
                        {"ph", "X"},
                        {"pid", e.rank},
                        {"tid", e.queue},
                        {"ts", e.begin_us},
                        {"dur", e.duration_us},
                        {"args", {{"flops", e.flops}, {"bytes", e.bytes}}}});
    }
    return {{"traceEvents", list}, {"displayTimeUnit", "ms"}};
}

}  // namespace convoy
