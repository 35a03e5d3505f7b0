#include "kernels/reference/update.h"

#include <cmath>

#include "kernels/reference/kernel_testing.h"

namespace convoy::ref {
namespace {

using namespace testing;

const Shape kShape{4};
Tensor start() { return doubles(kShape, {0.5, -1, 2, 0.25}); }
std::vector<Tensor> gradients() {
    return {doubles(kShape, {0.1, -0.2, 0.3, 0}), doubles(kShape, {-0.4, 0.25, 0.05, 1}), doubles(kShape, {0.2, 0.2, -0.6, -0.5})};
}

// The weights after one step per gradient, from zero slots. `scale`, when there is one, is the gradient scale.
Tensor train(const UpdateRule& rule, double rate, std::optional<double> scale = {}) {
    Tensor w = start();
    std::vector<Tensor> slots(static_cast<size_t>(slots_of(rule.rule)), Tensor(kShape, DType::f64));
    double step = 0;
    for (const auto& g : gradients()) {
        std::vector<Tensor> inputs{w, g, doubles({2}, {rate, ++step})};
        for (const auto& slot : slots) inputs.push_back(slot);
        if (scale) inputs.push_back(doubles({1}, {*scale}));
        auto results = run<double>(UpdateOp{rule, scale.has_value()}, inputs, std::vector<Shape>(1 + slots.size(), kShape));
        w = results[0];
        for (size_t k = 0; k < slots.size(); ++k) slots[k] = results[1 + k];
    }
    return w;
}

// PyTorch's weights after the same three steps, in double.
TEST(Update, ThreeStepsAsPyTorch) {
    expect_near(train({.rule = Rule::Sgd}, 0.1), {0.51, -1.025, 2.025, 0.2});
    expect_near(train({.rule = Rule::Sgd, .weight_decay = 0.05}, 0.1), {0.5024371875, -1.010149375, 1.995474, 0.19676871875});
    expect_near(train({.rule = Rule::Momentum, .momentum = 0.9, .weight_decay = 0.05}, 0.1),
                {0.5149246875, -0.985624375, 1.913934, 0.10351746875});
    expect_near(train({.rule = Rule::Nesterov, .momentum = 0.9, .weight_decay = 0.05}, 0.1),
                {0.5158521065625, -0.997646963125, 1.919113491, 0.06583046065625});
    expect_near(train({.rule = Rule::AdaGrad, .epsilon = 1e-10, .weight_decay = 0.05}, 0.1),
                {0.4460108219802, -1.005915880621, 1.942502539013, 0.09428075249631});
    expect_near(train({.rule = Rule::RmsProp, .momentum = 0, .rho = 0.99, .epsilon = 1e-8, .weight_decay = 0.05}, 0.01),
                {0.4458514836162, -1.006384081237, 1.942650041955, 0.09446055990949});
    expect_near(train({.rule = Rule::RmsProp, .momentum = 0.9, .rho = 0.99, .epsilon = 1e-8, .weight_decay = 0.05}, 0.01),
                {0.3611386841583, -0.8936502663179, 1.741118713457, -0.1662094445815});
    expect_near(train({.rule = Rule::Adam, .weight_decay = 0.05}, 0.01),
                {0.4951132159002, -0.9917505293089, 1.98152910172, 0.2300165973156});
    expect_near(train({.rule = Rule::AdamW, .weight_decay = 0.05}, 0.01),
                {0.4959543472656, -0.9945901229447, 1.982145655197, 0.2399011363002});
}

TEST(Update, ClippingScalesTheGradientButNotTheDecay) {
    // w - 0.1*(g/2 + 0.05*w), three times.
    std::vector<double> expected{0.5, -1, 2, 0.25};
    for (const auto& g : gradients()) {
        for (size_t i = 0; i < 4; ++i) expected[i] -= 0.1 * (element(g, static_cast<int64_t>(i)) / 2 + 0.05 * expected[i]);
    }
    expect_near(train({.rule = Rule::Sgd, .weight_decay = 0.05}, 0.1, 0.5), expected);
}

TEST(SquaredNormAndClipScale, ByHand) {
    expect_near(run<double>(SquaredNormOp{}, {doubles({3}, {3, -4, 12})}, {{1}})[0], {169});
    expect_near(run<double>(ClipScaleOp{26}, {doubles({1}, {169})}, {{1}})[0], {1});
    expect_near(run<double>(ClipScaleOp{6.5}, {doubles({1}, {169})}, {{1}})[0], {6.5 / (13 + 1e-6)});
    expect_near(run<double>(ClipScaleOp{1}, {doubles({1}, {0})}, {{1}})[0], {1});
    EXPECT_TRUE(std::isnan(element(run<double>(ClipScaleOp{1}, {doubles({1}, {NAN})}, {{1}})[0], 0)));
}

struct LarsCase {
    double w_squares, g_squares, ratio;
    std::optional<double> scale;
};

TEST(Lars, RatioOfNorms) {
    const Tensor w = doubles({2}, {3, 4}), g = doubles({2}, {0.6, -0.8}), v = doubles({2}, {1, -1});
    const UpdateRule rule{.rule = Rule::Lars, .momentum = 0.9, .trust = 0.02, .weight_decay = 0.1};
    const std::vector<LarsCase> cases{
        {25, 1, 0.02 * 5 / (1 + 0.1 * 5), {}},
        {0, 1, 1, {}},
        {25, 0, 1, {}},
        {25, 1, 0.02 * 5 / (0.5 + 0.1 * 5), 0.5},
    };
    for (const auto& c : cases) {
        std::vector<Tensor> inputs{w, g, doubles({2}, {0.1, 1}), v, doubles({1}, {c.w_squares}), doubles({1}, {c.g_squares})};
        if (c.scale) inputs.push_back(doubles({1}, {*c.scale}));
        const auto results = run<double>(UpdateOp{rule, c.scale.has_value()}, inputs, {{2}, {2}});
        const double s = c.scale.value_or(1);
        const double v0 = 0.9 + c.ratio * (0.6 * s + 0.3), v1 = -0.9 + c.ratio * (-0.8 * s + 0.4);
        expect_near(results[1], {v0, v1});
        expect_near(results[0], {3 - 0.1 * v0, 4 - 0.1 * v1});
    }
}

// By hand: in step 1 mhat = g and vhat = g*g, so the direction is sign(g) + 0.1*w.
TEST(Lamb, DirectionAndApply) {
    const Tensor w = doubles({2}, {3, 4}), g = doubles({2}, {0.6, -0.8}), zero(Shape{2}, DType::f64), hyper = doubles({2}, {0.1, 1});
    const UpdateRule rule{.rule = Rule::Lamb, .epsilon = 0, .weight_decay = 0.1};
    const auto direction = run<double>(LambDirectionOp{rule, false}, {w, g, hyper, zero, zero}, {{2}, {2}, {2}});
    expect_near(direction[0], {1 + 0.3, -1 + 0.4});
    expect_near(direction[1], {0.06, -0.08});
    expect_near(direction[2], {0.00036, 0.00064});
    // The second step with the same gradient has the same corrected moments.
    const auto second =
        run<double>(LambDirectionOp{rule, false}, {w, g, doubles({2}, {0.1, 2}), direction[1], direction[2]}, {{2}, {2}, {2}});
    expect_near(second[0], {1 + 0.3, -1 + 0.4});
    const auto clipped = run<double>(LambDirectionOp{rule, true}, {w, g, hyper, zero, zero, doubles({1}, {0.5})}, {{2}, {2}, {2}});
    expect_near(clipped[1], {0.03, -0.04});

    const double r_squares = 1.3 * 1.3 + 0.6 * 0.6, rate = 0.1 * 5 / std::sqrt(r_squares);
    const auto apply = [&](double w2, double r2) {
        return run<double>(LambApplyOp{}, {w, direction[0], hyper, doubles({1}, {w2}), doubles({1}, {r2})}, {{2}})[0];
    };
    expect_near(apply(25, r_squares), {3 - rate * 1.3, 4 + rate * 0.6});
    expect_near(apply(0, r_squares), {3 - 0.1 * 1.3, 4 + 0.1 * 0.6});
    expect_near(apply(25, 0), {3 - 0.1 * 1.3, 4 + 0.1 * 0.6});
}

TEST(Update, InPlaceAndTypesAndThreads) {
    const Shape shape{20000};
    Tensor w = normal(shape, "w"), g = normal(shape, "g"), s0 = normal(shape, "s0"), s1 = normal(shape, "s1"),
           hyper = doubles({2}, {0.1, 3});
    for (auto* slot : {&s0, &s1}) {
        for (auto& value : slot->as<double>()) value = std::abs(value);
    }
    Tensor w2 = doubles({1}, {4}), g2 = doubles({1}, {9}), scale = doubles({1}, {0.5});
    for (const auto rule : {Rule::Sgd, Rule::Momentum, Rule::Nesterov, Rule::AdaGrad, Rule::RmsProp, Rule::Adam, Rule::AdamW, Rule::Lars}) {
        SCOPED_TRACE(name_of(rule));
        const UpdateOp op{{.rule = rule, .weight_decay = 0.01}, true};
        const int slots = slots_of(rule);
        std::vector<Tensor> inputs{w, g, hyper};
        if (slots > 0) inputs.push_back(s0);
        if (slots > 1) inputs.push_back(s1);
        if (rule == Rule::Lars) inputs.insert(inputs.end(), {w2, g2});
        inputs.push_back(scale);
        const std::vector<Shape> shapes(static_cast<size_t>(1 + slots), shape);
        expect_types_and_threads_agree(op, inputs, shapes);

        const auto apart = run<double>(op, inputs, shapes);
        std::vector<Tensor*> in, out{&inputs[0]};
        for (auto& t : inputs) in.push_back(&t);
        for (int k = 0; k < slots; ++k) out.push_back(&inputs[static_cast<size_t>(3 + k)]);
        run_into<double>(op, in, out, {.threads = 2});
        for (size_t k = 0; k < out.size(); ++k) EXPECT_EQ(*out[k], apart[k]);
    }
    const UpdateRule lamb{.rule = Rule::Lamb, .weight_decay = 0.01};
    expect_types_and_threads_agree(LambDirectionOp{lamb, true}, {w, g, hyper, s0, s1, scale}, {shape, shape, shape});
    expect_types_and_threads_agree(LambApplyOp{}, {w, g, hyper, w2, g2}, {shape});
    expect_types_and_threads_agree(SquaredNormOp{}, {w}, {{1}});

    const auto direction = run<double>(LambDirectionOp{lamb, false}, {w, g, hyper, s0, s1}, {shape, shape, shape});
    run_into<double>(LambDirectionOp{lamb, false}, {&w, &g, &hyper, &s0, &s1}, {&g, &s0, &s1});
    EXPECT_EQ(g, direction[0]);
    EXPECT_EQ(s0, direction[1]);
    EXPECT_EQ(s1, direction[2]);
    const auto applied = run<double>(LambApplyOp{}, {w, g, hyper, w2, g2}, {shape})[0];
    run_into<double>(LambApplyOp{}, {&w, &g, &hyper, &w2, &g2}, {&w});
    EXPECT_EQ(w, applied);
}

TEST(Update, LambIsNotOneOp) {
    const UpdateOp op{{.rule = Rule::Lamb}, false};
    const Tensor w = start(), zero(kShape, DType::f64);
    EXPECT_THROW(run<double>(op, {w, zero, doubles({2}, {0.1, 1}), zero, zero}, {kShape, kShape, kShape}), Bug);
}

}  // namespace
}  // namespace convoy::ref
