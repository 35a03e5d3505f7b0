#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "report/fields.h"
#include "report/views.h"

namespace convoy {

namespace {

constexpr size_t kMostPoints = 1200;

using Points = std::vector<std::pair<double, double>>;

// Of every stretch of points the lowest and the highest, so that no spike is lost.
Points thinned(const Points& points) {
    if (points.size() <= kMostPoints) return points;
    const size_t stretches = kMostPoints / 2;
    Points kept;
    for (size_t i = 0; i < stretches; ++i) {
        const auto begin = points.begin() + static_cast<std::ptrdiff_t>(i * points.size() / stretches);
        const auto end = points.begin() + static_cast<std::ptrdiff_t>((i + 1) * points.size() / stretches);
        auto [low, high] = std::minmax_element(begin, end, [](const auto& a, const auto& b) { return a.second < b.second; });
        if (high < low) std::swap(low, high);
        kept.push_back(*low);
        if (high != low) kept.push_back(*high);
    }
    if (kept.back() != points.back()) kept.push_back(points.back());
    return kept;
}

Points points_of(const std::vector<Json>& metrics, const std::string& kind, const char* field) {
    Points points;
    for (const Json& line : metrics) {
        const auto step = fields::number(line, "step"), value = fields::number(line, field);
        if (fields::text(line, "kind") == kind && step && value && std::isfinite(*value)) points.emplace_back(*step, *value);
    }
    return points;
}

// Of the steps or, where a run is too short for such lines, of the epochs.
Points training_points(const std::vector<Json>& metrics, const char* field) {
    Points steps = points_of(metrics, "step", field), epochs = points_of(metrics, "epoch", field);
    return steps.size() >= 2 || epochs.empty() ? steps : epochs;
}

void add_series(Curve& curve, CurveSeries series) {
    if (series.points.empty()) return;
    series.points = thinned(series.points);
    curve.series.push_back(std::move(series));
}

}  // namespace

std::vector<Curve> curves_of(const std::vector<Json>& metrics) {
    Curve loss{.id = "loss", .title = "Loss", .label = "loss", .unit = "", .log = true};
    add_series(loss, {"training", "c0", "line", training_points(metrics, "loss")});
    add_series(loss, {"test", "c1", "points", points_of(metrics, "epoch", "test_loss")});
    Curve accuracy{.id = "accuracy", .title = "Accuracy", .label = "predicted right", .unit = "percent"};
    add_series(accuracy, {"training", "c0", "line", training_points(metrics, "accuracy")});
    add_series(accuracy, {"test", "c1", "points", points_of(metrics, "epoch", "test_accuracy")});
    Curve throughput{.id = "throughput", .title = "Throughput", .label = "samples per second", .unit = "count"};
    add_series(throughput, {"samples per second", "c2", "line", training_points(metrics, "samples_per_s")});
    Curve rate{.id = "rate", .title = "Learning rate", .label = "learning rate", .unit = ""};
    add_series(rate, {"learning rate", "c3", "line", training_points(metrics, "lr")});
    Curve error{.id = "mae", .title = "Mean absolute error", .label = "on the test split", .unit = ""};
    add_series(error, {"mean absolute error", "c1", "points", points_of(metrics, "epoch", "test_mae")});
    Curve explained{.id = "r2", .title = "R²", .label = "on the test split", .unit = ""};
    add_series(explained, {"R²", "c1", "points", points_of(metrics, "epoch", "test_r2")});
    Curve overlap{.id = "iou", .title = "Intersection over union", .label = "mean over classes, test split", .unit = "percent"};
    add_series(overlap, {"intersection over union", "c1", "points", points_of(metrics, "epoch", "test_mean_iou")});
    std::vector<Curve> curves;
    for (Curve* curve : {&loss, &accuracy, &error, &explained, &overlap, &throughput, &rate})
        if (!curve->series.empty()) curves.push_back(std::move(*curve));
    return curves;
}

}  // namespace convoy
