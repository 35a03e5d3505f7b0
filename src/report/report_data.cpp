#include "report/report_data.h"
#include "base/json.h"

#include <cmath>

namespace convoy {

namespace {

// Rounded to what can be seen, so that the page stays small.
double hundredths(double value) { return std::round(value * 100) / 100; }
double five_digits(double value) {
    if (value == 0 || !std::isfinite(value)) return value;
    const double scale = std::pow(10.0, 5 - std::ceil(std::log10(std::abs(value))));
    return std::round(value * scale) / scale;
}

void put(Json& json, const char* name, const std::optional<double>& value) {
    if (value) json[name] = *value;
}
void put(Json& json, const char* name, const std::string& text) {
    if (!text.empty()) json[name] = text;
}

Json to_json(const Figure& figure) {
    Json json{{"label", figure.label}, {"value", figure.value}, {"unit", figure.unit}};
    put(json, "remark", figure.remark);
    return json;
}

Json to_json(const Curve& curve) {
    Json y{{"label", curve.label}, {"unit", curve.unit}}, series = Json::array();
    if (curve.log) y["log"] = *curve.log;
    put(y, "max", curve.max);
    for (const CurveSeries& s : curve.series) {
        Json points = Json::array();
        for (const auto& [x, value] : s.points) points.push_back({x, value});
        series.push_back({{"name", s.name}, {"color", s.color}, {"style", s.style}, {"points", points}});
    }
    return {{"id", curve.id}, {"title", curve.title}, {"y", y}, {"series", series}};
}

Json to_json(const TimelineTrack& track) {
    Json ranks = Json::array(), events = Json::array();
    for (const TimelineRank& r : track.ranks) {
        const StepParts& p = r.parts;
        ranks.push_back({{"label", "rank " + std::to_string(r.rank)},
                         {"count", r.count},
                         {"parts_us",
                          {five_digits(p.forward_us), five_digits(p.backward_us), five_digits(p.update_us), five_digits(p.waiting_us),
                           five_digits(p.idle_us)}}});
    }
    for (const TimelineEvent& e : track.events)
        events.push_back({e.rank, e.queue, e.phase, e.layer, e.what, hundredths(e.begin_us), hundredths(e.duration_us),
                          five_digits(e.flops), e.bytes, e.sent});
    return {{"name", track.name}, {"span_us", hundredths(track.span_us)}, {"ranks", ranks}, {"events", events}};
}

Json to_json(const Timeline& timeline) {
    Json tracks = Json::array();
    for (const TimelineTrack& track : timeline.tracks) tracks.push_back(to_json(track));
    return {{"queues", timeline.queues}, {"phases", timeline.phases}, {"layers", timeline.layers}, {"whats", timeline.whats},
            {"tracks", tracks},          {"lead", timeline.lead},     {"remark", timeline.remark}};
}

Json to_json(const Comparison& comparison) {
    Json totals = Json::array(), layers = Json::array();
    for (const auto& t : comparison.totals)
        totals.push_back({{"name", t.name}, {"unit", t.unit}, {"measured", t.measured}, {"predicted", t.predicted}});
    for (const auto& l : comparison.layers)
        layers.push_back({{"layer", l.layer}, {"measured_us", five_digits(l.measured_us)}, {"predicted_us", five_digits(l.predicted_us)}});
    return {{"totals", totals}, {"layers", layers}};
}

Json to_json(const MemoryView& memory) {
    Json uses = Json::array(), bands = Json::array(), holders = Json::array(), ranks = Json::array();
    for (const auto& use : memory.uses) uses.push_back({{"name", use.name}, {"bytes", use.bytes}});
    for (const auto& band : memory.bands) bands.push_back({{"phase", band.phase}, {"from", band.from}, {"to", band.to}});
    for (const auto& holder : memory.at_peak) holders.push_back({{"name", holder.name}, {"use", holder.use}, {"bytes", holder.bytes}});
    for (const auto& rank : memory.ranks)
        ranks.push_back(
            {{"label", rank.label}, {"count", rank.count}, {"arena_bytes", rank.arena_bytes}, {"state_bytes", rank.state_bytes}});
    return {
        {"rank", memory.rank}, {"allocated_bytes", memory.allocated_bytes}, {"at", memory.at},    {"layers", memory.layers}, {"uses", uses},
        {"bands", bands},      {"peak_layer", memory.peak_layer},           {"at_peak", holders}, {"ranks", ranks}};
}

Json to_json(const ScalingPoint& p) {
    Json json{{"ranks", p.ranks}};
    put(json, "batch", p.batch);
    put(json, "step_ms", p.step_ms);
    put(json, "samples_per_s", p.samples_per_s);
    put(json, "efficiency", p.efficiency);
    put(json, "waiting_ms", p.waiting_ms);
    put(json, "memory_bytes", p.memory_bytes);
    put(json, "joules", p.joules);
    put(json, "limit", p.limit);
    put(json, "failure", p.failure);
    return json;
}

Json to_json(const Scaling& scaling) {
    Json series = Json::array(), ideal = Json::array();
    for (const auto& line : scaling.series) {
        Json points = Json::array();
        for (const ScalingPoint& p : line.points) points.push_back(to_json(p));
        series.push_back({{"name", line.name}, {"points", points}});
    }
    for (const ScalingPoint& p : scaling.ideal) ideal.push_back(to_json(p));
    return {{"series", series}, {"ideal", ideal}, {"lead", scaling.lead}};
}

Json to_json(const PlanView& plan) {
    Json grids = Json::array();
    for (const auto& mesh : plan.grids) {
        Json axes = Json::array();
        for (const auto& [name, size] : mesh.axes) axes.push_back({{"name", name}, {"size", size}});
        grids.push_back({{"axes", axes}, {"ranks", mesh.ranks}, {"size", mesh.size}});
    }
    return {{"grids", grids}, {"layers", plan.layers}, {"unfollowed", plan.unfollowed}, {"lead", plan.lead}};
}

const char* word_of(ReportData::State state) {
    switch (state) {
        case ReportData::State::Running: return "running";
        case ReportData::State::Done: return "done";
        case ReportData::State::Stopped: return "stopped";
        case ReportData::State::None: break;
    }
    return "";
}

}  // namespace

Json to_json(const ReportData& data) {
    Json json{{"kind", data.kind}, {"title", data.title}, {"source", data.source}, {"written", data.written}, {"made_by", data.made_by}};
    if (data.state != ReportData::State::None) json["status"] = {{"state", word_of(data.state)}, {"text", data.status}};
    json["notes"] = data.notes;
    for (const char* list : {"figures", "facts", "curves"}) json[list] = Json::array();
    for (const Figure& figure : data.figures) json["figures"].push_back(to_json(figure));
    for (const Fact& fact : data.facts) json["facts"].push_back({{"label", fact.label}, {"value", fact.value}});
    for (const Curve& curve : data.curves) json["curves"].push_back(to_json(curve));
    if (data.scaling) json["scaling"] = to_json(*data.scaling);
    if (data.timeline) json["timeline"] = to_json(*data.timeline);
    if (data.comparison) json["comparison"] = to_json(*data.comparison);
    if (data.memory) json["memory"] = to_json(*data.memory);
    if (data.plan) json["plan"] = to_json(*data.plan);
    return json;
}

}  // namespace convoy
