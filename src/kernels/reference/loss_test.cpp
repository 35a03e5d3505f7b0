// The numbers of cross-entropy, squared and absolute error are PyTorch's (reduction "mean"), in double.
#include "kernels/reference/loss.h"

#include <cmath>

#include "kernels/reference/kernel_testing.h"

namespace convoy::ref {
namespace {

using namespace testing;

class CrossEntropy : public ::testing::Test {
  protected:
    Shape shape{2, 3, 2};
    Tensor logits = sequence(shape), target = Tensor::of<int32_t>({2, 2}, {0, 2, 1, 1});
    Tensor weights = doubles({3}, {0.5, 2, 1.25});
};

TEST_F(CrossEntropy, Mean) {
    expect_near(run<double>(CrossEntropyOp{.scale = 0.25}, {logits, target}, {{1}})[0], {1.832384766003});
    expect_near(run<double>(CrossEntropyGradOp{.scale = 0.25}, {logits, target}, {shape})[0],
                {-0.2170995882133, 0.07345369367787, 0.06965017229907, 0.1555014707363, 0.1474494159142, -0.2289551644142, 0.1758284940054,
                 0.07345369367787, -0.2262042009627, -0.09449852926368, 0.05037570695726, 0.02104483558581});
}

TEST_F(CrossEntropy, LabelSmoothing) {
    expect_near(run<double>(CrossEntropyOp{.label_smoothing = 0.1, .scale = 0.25}, {logits, target}, {{1}})[0], {1.786551432669});
    expect_near(run<double>(CrossEntropyGradOp{.label_smoothing = 0.1, .scale = 0.25}, {logits, target}, {shape})[0],
                {-0.2004329215466, 0.06512036034454, 0.06131683896573, 0.147168137403, 0.1391160825809, -0.2122884977475, 0.1674951606721,
                 0.06512036034454, -0.209537534296, -0.07783186259702, 0.04204237362393, 0.01271150225248});
}

TEST_F(CrossEntropy, ClassWeights) {
    const Tensor sum = run<double>(TargetWeightOp{}, {target, weights}, {{1}})[0];
    expect_near(sum, {0.5 + 1.25 + 2 + 2});
    expect_near(run<double>(CrossEntropyOp{}, {logits, target, weights, sum}, {{1}})[0], {1.697566994105});
    expect_near(run<double>(CrossEntropyGradOp{}, {logits, target, weights, sum}, {shape})[0],
                {-0.07551290024809, 0.06387277711119, 0.02422614688663, 0.1352186702055, 0.05128675336146, -0.1990914473167,
                 0.2446309481815, 0.1021964433779, -0.3147188882959, -0.1314762146277, 0.07008794011445, 0.02927977124982});
}

TEST_F(CrossEntropy, ClassWeightsAndLabelSmoothing) {
    const Tensor sum = doubles({1}, {5.75});
    expect_near(run<double>(CrossEntropyOp{.label_smoothing = 0.1}, {logits, target, weights, sum}, {{1}})[0], {1.646206071449});
    expect_near(run<double>(CrossEntropyGradOp{.label_smoothing = 0.1}, {logits, target, weights, sum}, {shape})[0],
                {-0.06799925557516, 0.06097422638656, 0.01626586602108, 0.1236244673069, 0.05173338955409, -0.1845986936935, 0.2325587369,
                 0.0954655260266, -0.2927720024486, -0.116400929043, 0.06021326554857, 0.02093540301636});
}

TEST_F(CrossEntropy, ExtremeLogitsStayFinite) {
    const Tensor x = doubles({2, 2}, {1e4, -1e4, 1e4, -1e4}), t = Tensor::of<int32_t>({2}, {0, 1});
    expect_near(run<double>(CrossEntropyOp{}, {x, t}, {{1}})[0], {2e4});
    expect_near(run<double>(CrossEntropyGradOp{}, {x, t}, {{2, 2}})[0], {0, 0, 1, -1});
    // A class that is ruled out costs nothing while it is not the target.
    const Tensor out = doubles({1, 2}, {0, -INFINITY}), zero = Tensor::of<int32_t>({1}, {0});
    expect_near(run<double>(CrossEntropyOp{}, {out, zero}, {{1}})[0], {0});
    expect_near(run<double>(CrossEntropyGradOp{}, {out, zero}, {{1, 2}})[0], {0, 0});
}

TEST_F(CrossEntropy, LabelOutOfRangeGivesNaN) {
    for (const int32_t label : {-1, 3, 1 << 30}) {
        SCOPED_TRACE(label);
        const Tensor bad = Tensor::of<int32_t>({2, 2}, {0, 2, label, 1});
        EXPECT_TRUE(std::isnan(element(run<double>(CrossEntropyOp{}, {logits, bad}, {{1}})[0], 0)));
        EXPECT_TRUE(std::isnan(element(run<double>(TargetWeightOp{}, {bad, weights}, {{1}})[0], 0)));
        const Tensor grad = run<double>(CrossEntropyGradOp{}, {logits, bad, weights, doubles({1}, {1})}, {shape})[0];
        for (int64_t i = 0; i < grad.numel(); ++i) EXPECT_EQ(std::isnan(element(grad, i)), i == 6 || i == 8 || i == 10) << i;
        EXPECT_LE(element(run<double>(CorrectOp{}, {logits, bad}, {{1}})[0], 0), 3);
    }
}

TEST(ErrorLoss, SquaredAndAbsolute) {
    const Shape shape{2, 3, 2};
    const Tensor x = sequence(shape), target = gradient_sequence(shape);
    const double scale = 1.0 / 12;
    expect_near(run<double>(ErrorLossOp{ErrorKind::Squared, scale}, {x, target}, {{1}})[0], {0.9088541666667});
    expect_near(run<double>(ErrorLossGradOp{ErrorKind::Squared, scale}, {x, target}, {shape})[0],
                {-0.08333333333333, 0.1041666666667, -0.1666666666667, 0.2916666666667, 0.02083333333333, -0.25, 0.2083333333333, -0.0625,
                 -0.0625, 0.125, -0.1458333333333, -0.1458333333333});
    expect_near(run<double>(ErrorLossOp{ErrorKind::Absolute, scale}, {x, target}, {{1}})[0], {0.8333333333333});
    const double g = scale;
    expect_near(run<double>(ErrorLossGradOp{ErrorKind::Absolute, scale}, {x, target}, {shape})[0],
                {-g, g, -g, g, g, -g, g, -g, -g, g, -g, -g});
    expect_near(run<double>(ErrorLossGradOp{ErrorKind::Absolute, 1}, {x, x}, {shape})[0], std::vector<double>(12, 0));
}

TEST(Correct, CountsTheFirstLargest) {
    const Tensor logits = doubles({4, 3}, {1, 2, 0, 5, 5, 1, 5, 5, 1, -1, -2, -3});
    EXPECT_EQ(element(run<double>(CorrectOp{}, {logits, Tensor::of<int32_t>({4}, {1, 0, 1, 0})}, {{1}})[0], 0), 3);
    // Per position: [1, 2 classes, 2 positions].
    EXPECT_EQ(element(run<double>(CorrectOp{}, {doubles({1, 2, 2}, {1, 0, 0, 1}), Tensor::of<int32_t>({1, 2}, {0, 1})}, {{1}})[0], 0), 2);
}

TEST(Loss, TypesAndThreadsAgree) {
    for (const Shape& shape : {Shape{7, 10}, Shape{4000, 3}, Shape{2, 5, 40, 30}}) {
        SCOPED_TRACE(to_string(shape));
        const int64_t classes = shape[1];
        const Tensor logits = normal(shape, "logits"), other = normal(shape, "other"), one = doubles({1}, {3.5});
        Tensor target(join({shape[0]}, shape.slice(2)), DType::i32), weights(Shape{classes}, DType::f64);
        const RandomStream random{2, 0, 0};
        uint64_t i = 0;
        for (auto& t : target.as<int32_t>()) t = static_cast<int32_t>(random.bits(i++) % static_cast<uint32_t>(classes));
        for (auto& w : weights.as<double>()) w = 0.5 + random.uniform(i++);
        for (const double smoothing : {0.0, 0.2}) {
            expect_types_and_threads_agree(CrossEntropyOp{smoothing, 0.01}, {logits, target}, {{1}});
            expect_types_and_threads_agree(CrossEntropyGradOp{smoothing, 0.01}, {logits, target, weights, one}, {shape});
        }
        expect_types_and_threads_agree(TargetWeightOp{}, {target, weights}, {{1}});
        expect_types_and_threads_agree(CorrectOp{}, {logits, target}, {{1}});
        for (const auto kind : {ErrorKind::Squared, ErrorKind::Absolute}) {
            expect_types_and_threads_agree(ErrorLossOp{kind, 0.1}, {logits, other}, {{1}});
            expect_types_and_threads_agree(ErrorLossGradOp{kind, 0.1}, {logits, other}, {shape});
        }
    }
}

TEST(Nll, WeightsAndAnIgnoredClass) {
    const Tensor x = doubles({3, 2, 2}, {-1, -2, -3, -4, -5, -6, -7, -8, -9, -10, -11, -12}), weights = doubles({2}, {0.5, 2});
    const Tensor target = Tensor::of<int32_t>({3, 2}, {0, 1, 1, 0, 1, 1});
    const auto made = run<double>(NllOp{.ignored = 0}, {x, target, weights}, {{3, 2}, {3, 2}});
    expect_near(made[0], {0, 8, 14, 0, 22, 24});
    expect_near(made[1], {0, 2, 2, 0, 2, 2});
    expect_near(run<double>(NllOp{.ignored = -1}, {x, target, weights}, {{3, 2}, {3, 2}})[0], {0.5, 8, 14, 3, 22, 24});
    const Tensor dy = doubles({3, 2}, {1, 2, 3, 4, 5, 6});
    expect_near(run<double>(NllGradOp{.ignored = 0}, {dy, target, weights}, {{3, 2, 2}})[0], {0, 0, 0, -4, 0, 0, -6, 0, 0, 0, -10, -12});
}

}  // namespace
}  // namespace convoy::ref
