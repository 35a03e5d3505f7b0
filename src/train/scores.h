// What besides loss and accuracy tells how well a network predicts: for regressions the mean absolute error and R^2, for labels of voxels the intersection
// over union of every class.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "data/dataset.h"
#include "train/team.h"

namespace convoy {

// By name, in the order in which a person would read them:
//
//     mae, r2, r2_0, r2_1, ...   Regression; r2 is the mean over outputs of 1 - squared errors / squared deviations from the mean of the targets, so the
//                      best constant predictor has 0. Outputs whose targets do not vary are left out; none: no r2. Two to 32 outputs are also listed
//     mean_iou, majority, iou_0, iou_1, ...   Voxel; means are over the classes that occur. `majority` is the share of the most frequent class, the accuracy
//                      of the best constant predictor. Classes are listed when there are at most 32
using Scores = std::vector<std::pair<std::string, double>>;

// Gathers predictions over a dataset.
class ScoreSums {
  public:
    // `outputs` is the shape of the model's first output for one sample: classes first for Voxel.
    ScoreSums(TargetKind kind, const Shape& outputs);

    // Whether there is anything to gather.
    bool wanted() const { return !sums_.empty(); }
    // A box of the batch's predictions with the targets of the same samples and places. Where several ranks have the same box all of them add it.
    void add(const Tensor& prediction, const Box& box, const Tensor& target);
    // Over all ranks, which ask together.
    Scores scores(const Team& team);

  private:
    void add_regression(const Tensor& prediction, const Box& box, const Tensor& target);
    void add_voxels(const Tensor& prediction, const Tensor& target);

    TargetKind kind_;
    int64_t width_;             // outputs of a regression, or classes
    std::vector<double> sums_;  // Regression: [5][outputs]: samples, |e|, e^2, t, t^2; Voxel: [target][prediction]
};

}  // namespace convoy
