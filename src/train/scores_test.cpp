#include "train/scores.h"

#include <gtest/gtest.h>

namespace convoy {
namespace {

double score(const Scores& scores, const std::string& name) {
    for (const auto& [known, value] : scores)
        if (known == name) return value;
    ADD_FAILURE() << "no " << name;
    return 0;
}

TEST(Scores, of_a_regression) {
    ScoreSums sums(TargetKind::Regression, {2});
    const Team alone(nullptr);
    // Two batches; the first output's targets are 1, 2, 3 with errors 0, 1, -1, the second's are all 4 with errors 0, 0, 3.
    sums.add(Tensor::of<float>({2, 2}, {1, 4, 3, 4}), {{0, 0}, {2, 2}}, Tensor::of<float>({2, 2}, {1, 4, 2, 4}));
    sums.add(Tensor::of<float>({1, 2}, {2, 7}), {{0, 0}, {1, 2}}, Tensor::of<float>({1, 2}, {3, 4}));
    const Scores scores = sums.scores(alone);
    EXPECT_DOUBLE_EQ(score(scores, "mae"), 5.0 / 6);
    EXPECT_DOUBLE_EQ(score(scores, "r2"), 0);  // squared errors 2, deviations 2; the second output does not vary
    EXPECT_DOUBLE_EQ(score(scores, "r2_0"), 0);
    EXPECT_EQ(scores.size(), 3u);
}

TEST(Scores, of_a_perfect_and_a_constant_prediction) {
    const Team alone(nullptr);
    const Tensor targets = Tensor::of<float>({4, 1}, {-1, 0, 1, 2});
    ScoreSums perfect(TargetKind::Regression, {1}), constant(TargetKind::Regression, {1});
    perfect.add(targets, Box::whole({4, 1}), targets);
    constant.add(Tensor::of<float>({4, 1}, {0.5, 0.5, 0.5, 0.5}), Box::whole({4, 1}), targets);
    EXPECT_DOUBLE_EQ(score(perfect.scores(alone), "r2"), 1);
    EXPECT_NEAR(score(constant.scores(alone), "r2"), 0, 1e-12);
}

TEST(Scores, do_not_depend_on_how_outputs_are_divided) {
    const Team alone(nullptr);
    const Tensor predictions = Tensor::of<float>({2, 3}, {1, 2, 3, 5, 4, 7}), targets = Tensor::of<float>({2, 3}, {0, 2, 4, 5, 5, 9});
    ScoreSums whole(TargetKind::Regression, {3}), parts(TargetKind::Regression, {3});
    whole.add(predictions, Box::whole({2, 3}), targets);
    for (int64_t begin = 0; begin < 3; ++begin)
        for (int twice = 0; twice < 2; ++twice) {  // as two ranks would that hold the same
            const Box box{{0, begin}, {2, 1}};
            parts.add(part_of(predictions, box), box, part_of(targets, box));
        }
    EXPECT_EQ(whole.scores(alone), parts.scores(alone));
}

TEST(Scores, of_voxels) {
    // Four places of one sample, three classes of which the last never occurs; predicted 0 0 1 1, right would be 0 1 1 1.
    ScoreSums sums(TargetKind::Voxel, {3, 4});
    sums.add(Tensor::of<float>({1, 3, 4}, {2, 2, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0}), Box::whole({1, 3, 4}),
             Tensor::of<int32_t>({1, 4}, {0, 1, 1, 1}));
    const Scores scores = sums.scores(Team(nullptr));
    EXPECT_DOUBLE_EQ(score(scores, "iou_0"), 0.5);
    EXPECT_DOUBLE_EQ(score(scores, "iou_1"), 2.0 / 3);
    EXPECT_DOUBLE_EQ(score(scores, "mean_iou"), (0.5 + 2.0 / 3) / 2);
    EXPECT_DOUBLE_EQ(score(scores, "majority"), 0.75);
}

TEST(Scores, of_classes_are_none) { EXPECT_FALSE(ScoreSums(TargetKind::Class, {10}).wanted()); }

}  // namespace
}  // namespace convoy
