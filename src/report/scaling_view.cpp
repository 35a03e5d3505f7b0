#include <algorithm>

#include <fmt/format.h>

#include "base/json.h"
#include "report/fields.h"
#include "report/views.h"

namespace convoy {

namespace {

// What the class of ranks that finishes last waits for traffic.
std::optional<double> waiting_of(const Json& point) {
    std::optional<double> waiting;
    double last = 0;
    for (const Json& ranks : fields::list(point, "classes")) {
        if (fields::number(ranks, "step_ms").value_or(0) < last) continue;
        last = fields::number(ranks, "step_ms").value_or(0);
        waiting = fields::number(ranks, "waiting_ms");
    }
    return waiting;
}

ScalingPoint point_of(const Json& json) {
    ScalingPoint point{.ranks = fields::whole(json, "ranks", 1),
                       .batch = fields::number(json, "batch"),
                       .step_ms = fields::number(json, "step_ms"),
                       .samples_per_s = fields::number(json, "samples_per_s"),
                       .waiting_ms = waiting_of(json),
                       .memory_bytes = fields::number(json, "memory_bytes"),
                       .joules = fields::number(json, "joules"),
                       .limit = fields::text(json, "limit"),
                       .failure = fields::text(json, "failure")};
    if (point.joules == 0.0) point.joules.reset();  // not known
    if (!point.samples_per_s && point.batch && point.step_ms && *point.step_ms > 0)
        point.samples_per_s = *point.batch / *point.step_ms * 1e3;
    if (!point.step_ms && point.failure.empty()) point.failure = "it has no time of a step";
    return point;
}

std::vector<ScalingPoint> points_of(const Json& list) {
    std::vector<ScalingPoint> points;
    for (const Json& json : list)
        if (json.is_object()) points.push_back(point_of(json));
    std::stable_sort(points.begin(), points.end(), [](const auto& a, const auto& b) { return a.ranks < b.ranks; });
    return points;
}

const ScalingPoint* first_done(const std::vector<ScalingPoint>& points) {
    for (const ScalingPoint& point : points)
        if (point.step_ms && point.samples_per_s) return &point;
    return nullptr;
}

// Throughput of a rank against that of a rank of the first point: the same for fixed and for growing batches.
void add_efficiency(std::vector<ScalingPoint>& points, const ScalingPoint& base) {
    const double of_rank = *base.samples_per_s / static_cast<double>(base.ranks);
    for (ScalingPoint& p : points)
        if (p.samples_per_s) p.efficiency = *p.samples_per_s / static_cast<double>(p.ranks) / of_rank;
}

}  // namespace

std::optional<Scaling> scaling_of(const Json& simulation) {
    Scaling scaling;
    const std::string plan = fields::text(simulation, "plan");
    scaling.series.push_back({plan.empty() ? "plan" : plan, points_of(fields::list(simulation, "points"))});
    if (const Json& baseline = fields::list(simulation, "baseline"); !baseline.empty())
        scaling.series.push_back({"data parallel", points_of(baseline)});
    auto& points = scaling.series[0].points;
    if (points.size() < 2) return std::nullopt;
    const ScalingPoint* const found = first_done(points);
    if (!found) return scaling;
    const ScalingPoint base = *found;
    for (auto& series : scaling.series) add_efficiency(series.points, base);
    for (const ScalingPoint& p : points) {
        if (!p.samples_per_s || !p.batch) continue;
        const double ideal = *base.samples_per_s * static_cast<double>(p.ranks) / static_cast<double>(base.ranks);
        scaling.ideal.push_back({.ranks = p.ranks, .step_ms = *p.batch / ideal * 1e3, .samples_per_s = ideal});
    }
    const bool weak = points.back().batch && base.batch && *points.back().batch != *base.batch;
    scaling.lead = fmt::format("{} scaling, as simulated. Efficiency is the throughput of a rank against that of a rank at {} rank{}.",
                               weak ? "Weak" : "Strong", base.ranks, base.ranks == 1 ? "" : "s");
    return scaling;
}

}  // namespace convoy
