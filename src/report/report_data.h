// What a report shows, as a plain value: read from a run or a simulation, turned into JSON, drawn by the page (web/). A part without data is empty, and the
// page leaves it out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"

namespace convoy {

// A number that counts. `unit` says how it is written: "", "count", "bytes", "us", "ms", "percent" (of 1), "joules", or a word put behind it.
struct Figure {
    std::string label;
    double value = 0;
    std::string unit, remark;
};
struct Fact {
    std::string label, value;
};

struct CurveSeries {
    std::string name, color, style = "line";  // "line" or "points"; the colour is a name of the page's style sheet
    std::vector<std::pair<double, double>> points;
};
struct Curve {
    std::string id, title, label, unit;  // of the vertical axis; the horizontal one counts steps
    std::optional<bool> log;             // whether it begins logarithmic, where that is offered
    std::optional<double> max;           // of the axis, at least
    std::vector<CurveSeries> series;
};

// Time in a step on one rank's compute queue, by what it is for.
struct StepParts {
    double forward_us = 0, backward_us = 0, update_us = 0;
    double waiting_us = 0;  // it computes nothing while traffic runs
    double idle_us = 0;     // nor does traffic run
};

struct TimelineRank {
    int64_t rank = 0, count = 1;  // for how many ranks it stands
    StepParts parts;
};
struct TimelineEvent {
    int rank = 0, queue = 0, phase = 0, layer = 0, what = 0;  // indices into the track's ranks and the timeline's names
    double begin_us = 0, duration_us = 0, flops = 0;
    int64_t bytes = 0, sent = 0;
};
struct TimelineTrack {
    std::string name;  // "measured", "predicted"
    double span_us = 0;
    std::vector<TimelineRank> ranks;
    std::vector<TimelineEvent> events;
};
struct Timeline {
    std::vector<std::string> queues, phases, layers, whats;
    std::vector<TimelineTrack> tracks;
    std::string lead, remark;
};

struct Comparison {
    struct Total {
        std::string name, unit;
        double measured = 0, predicted = 0;
    };
    struct Layer {
        std::string layer;
        double measured_us = 0, predicted_us = 0;
    };
    std::vector<Total> totals;
    std::vector<Layer> layers;  // by measured time, the longest first
};

struct MemoryView {
    struct Use {
        std::string name;
        std::vector<int64_t> bytes;  // at each of `at`
    };
    struct Band {
        std::string phase;
        int64_t from = 0, to = 0;  // instructions
    };
    struct Holder {
        std::string name, use;
        int64_t bytes = 0;
    };
    struct OfRank {
        std::string label;
        int64_t count = 1, arena_bytes = 0, state_bytes = 0;
    };
    int64_t rank = 0, allocated_bytes = 0;
    std::vector<int64_t> at;  // instructions
    std::vector<std::string> layers;
    std::vector<Use> uses;
    std::vector<Band> bands;
    std::string peak_layer;
    std::vector<Holder> at_peak;
    std::vector<OfRank> ranks;
};

struct ScalingPoint {
    int64_t ranks = 0;
    std::optional<double> batch, step_ms, samples_per_s, efficiency, waiting_ms, memory_bytes, joules;
    std::string limit, failure;  // what stands in the way of a faster step; why there is none
};
struct Scaling {
    struct Series {
        std::string name;
        std::vector<ScalingPoint> points;
    };
    std::vector<Series> series;
    std::vector<ScalingPoint> ideal;
    std::string lead;
};

struct PlanView {
    struct Mesh {
        std::vector<std::pair<std::string, int64_t>> axes;
        std::vector<int64_t> ranks;  // the first ones
        int64_t size = 0;
    };
    std::vector<Mesh> grids;
    Json layers = Json::array();  // as placement.json has them
    Json unfollowed = Json::array();
    std::string lead;
};

struct ReportData {
    enum class State : uint8_t { None, Running, Done, Stopped };
    std::string kind, title, source, written, made_by;  // kind: "run" or "simulation"
    State state = State::None;
    std::string status;
    std::vector<std::string> notes;  // what a reader should know about the data
    std::vector<Figure> figures;
    std::vector<Fact> facts;
    std::vector<Curve> curves;
    std::optional<Scaling> scaling;
    std::optional<Timeline> timeline;
    std::optional<Comparison> comparison;
    std::optional<MemoryView> memory;
    std::optional<PlanView> plan;
};

Json to_json(const ReportData& data);

}  // namespace convoy
