#include "train/scores.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace convoy {

namespace {

constexpr size_t kMostListed = 32;

enum Row : size_t { kSamples, kAbsolute, kSquares, kTargets, kTargetSquares, kRows };

Scores regression_scores(const std::vector<double>& sums, size_t width) {
    double absolute = 0, samples = 0, total = 0;
    Scores listed;
    for (size_t f = 0; f < width; ++f) {
        const auto sum = [&](Row row) { return sums[row * width + f]; };
        absolute += sum(kAbsolute);
        samples += sum(kSamples);
        const double deviations = sum(kTargetSquares) - sum(kTargets) * sum(kTargets) / sum(kSamples);
        // Rounding alone leaves a trace of deviations.
        if (!(deviations > 1e-12 * sum(kTargetSquares))) continue;
        const double explained = 1 - sum(kSquares) / deviations;
        total += explained;
        listed.emplace_back(fmt::format("r2_{}", f), explained);
    }
    Scores scores{{"mae", absolute / samples}};
    if (!listed.empty()) scores.emplace_back("r2", total / static_cast<double>(listed.size()));
    if (width > 1 && width <= kMostListed) scores.insert(scores.end(), listed.begin(), listed.end());
    return scores;
}

Scores voxel_scores(const std::vector<double>& counts, size_t classes) {
    std::vector<double> rows(classes), columns(classes);
    for (size_t t = 0; t < classes; ++t)
        for (size_t p = 0; p < classes; ++p) {
            rows[t] += counts[t * classes + p];
            columns[p] += counts[t * classes + p];
        }
    Scores listed;
    double sum = 0;
    int present = 0;
    for (size_t c = 0; c < classes; ++c) {
        const double both = counts[c * classes + c], either = rows[c] + columns[c] - both;
        if (either == 0) continue;
        sum += both / either;
        ++present;
        listed.emplace_back(fmt::format("iou_{}", c), both / either);
    }
    Scores scores{{"mean_iou", sum / present},
                  {"majority", *std::max_element(rows.begin(), rows.end()) / std::accumulate(rows.begin(), rows.end(), 0.0)}};
    if (classes <= kMostListed) scores.insert(scores.end(), listed.begin(), listed.end());
    return scores;
}

}  // namespace

ScoreSums::ScoreSums(TargetKind kind, const Shape& outputs) : kind_(kind), width_(0) {
    if (kind == TargetKind::Regression) {
        width_ = numel(outputs);
        sums_.resize(kRows * static_cast<size_t>(width_));
    } else if (kind == TargetKind::Voxel) {
        width_ = outputs[0];
        sums_.resize(static_cast<size_t>(width_ * width_));
    }
}

void ScoreSums::add(const Tensor& prediction, const Box& box, const Tensor& target) {
    if (prediction.numel() == 0) return;
    if (kind_ == TargetKind::Regression)
        add_regression(prediction, box, target);
    else if (kind_ == TargetKind::Voxel)
        add_voxels(prediction, target);
}

void ScoreSums::add_regression(const Tensor& prediction, const Box& box, const Tensor& target) {
    CONVOY_CHECK(prediction.shape() == target.shape(), "predictions {} and targets {}", to_string(prediction.shape()),
                 to_string(target.shape()));
    CONVOY_CHECK(box.shape.size() == 2 || box.shape.slice(1) == prediction.shape().slice(1), "a box {} of predictions", to_string(box));
    // Outputs are numbered as in the whole; only vectors are ever divided among ranks.
    const int64_t width = numel(box.shape.slice(1)), first = box.shape.size() == 2 ? box.origin[1] : 0;
    for (int64_t i = 0; i < prediction.numel(); ++i) {
        const double t = element(target, i), e = element(prediction, i) - t;
        const std::array<double, kRows> terms{1, std::abs(e), e * e, t, t * t};
        for (size_t row = 0; row < kRows; ++row)
            sums_[row * static_cast<size_t>(width_) + static_cast<size_t>(first + i % width)] += terms[row];
    }
}

void ScoreSums::add_voxels(const Tensor& prediction, const Tensor& target) {
    const Shape& shape = prediction.shape();
    const int64_t classes = shape[1], places = numel(shape.slice(2));
    CONVOY_CHECK(classes == width_ && target.numel() * classes == prediction.numel(), "predictions {} of {} classes for targets {}",
                 to_string(shape), width_, to_string(target.shape()));
    const Tensor logits = prediction.to(DType::f32);
    const float* const values = logits.as<float>().data();
    const auto labels = target.as<int32_t>();
    for (int64_t n = 0; n < shape[0]; ++n)
        for (int64_t i = 0; i < places; ++i) {
            const float* const first = values + n * classes * places + i;
            int64_t largest = 0;
            for (int64_t c = 1; c < classes; ++c)
                if (first[c * places] > first[largest * places]) largest = c;
            const int32_t label = labels[static_cast<size_t>(n * places + i)];
            if (label >= 0 && label < classes) ++sums_[static_cast<size_t>(label * classes + largest)];
        }
}

// Boxes of a grid that several ranks hold are held by equally many of them each, and all scores are ratios: counting them several times changes nothing.
Scores ScoreSums::scores(const Team& team) {
    if (!wanted()) return {};
    team.sum(sums_);
    return kind_ == TargetKind::Regression ? regression_scores(sums_, static_cast<size_t>(width_))
                                           : voxel_scores(sums_, static_cast<size_t>(width_));
}

}  // namespace convoy
