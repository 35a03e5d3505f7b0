#include "model/cost.h"

#include <gtest/gtest.h>

#include "model/builder.h"
#include "model/zoo.h"

namespace convoy {
namespace {

// The cost of the last node of a graph.
Cost last(Builder& b) { return cost_of(b.graph(), b.graph().nodes().back()); }

ValueType real(const Shape& shape) { return {shape, Element::Real}; }

Cost inferred(const Op& op, const std::vector<ValueType>& inputs) { return cost_of(op, inputs, infer(op, inputs)); }

TEST(Cost, LeNetAsTheLiteratureCountsIt) {
    for (const Mode mode : {Mode::Training, Mode::Evaluation}) {
        const auto [work, depth] = work_depth(make_model("lenet5", {.mode = mode}).graph);
        EXPECT_EQ(work, 421248);
        EXPECT_EQ(depth, 42);
    }
    EXPECT_EQ(work_depth(make_model("lenet5", {.batch = 8}).graph).work, 8 * 421248);
    EXPECT_EQ(work_depth(make_model("lenet5", {.batch = 8}).graph).depth, 42);
}

TEST(Cost, CosmoFlowConvolutions) {  // published: 18.5, 147.9 and 1183.4 GFLOP forward
    const auto convolutions = [](const char* name) {
        const Model model = make_model(name, {});
        double work = 0;
        for (const Node& node : model.graph.nodes())
            if (std::holds_alternative<ConvOp>(node.op)) work += cost_of(model.graph, node).work;
        return work / 1e9;
    };
    EXPECT_NEAR(convolutions("cosmoflow128"), 18.5, 0.05);
    EXPECT_NEAR(convolutions("cosmoflow256"), 147.9, 0.05);
    EXPECT_NEAR(convolutions("cosmoflow512"), 1183.4, 0.05);
}

TEST(Cost, Convolution) {
    Builder b(Mode::Training);
    const ValueId x = b.input({2, 6, 10, 10});
    b.conv("c", x, {.filters = 4, .kernel = {3, 5}, .groups = 2, .bias = false});
    const Cost cost = last(b);
    EXPECT_EQ(cost.work, 2.0 * (2 * 4 * 8 * 6) * 3 * 15);
    EXPECT_EQ(cost.depth, 2 + 2 + 3);
    EXPECT_EQ(cost.moved, 2 * 6 * 100 + 4 * 3 * 15 + 2 * 4 * 8 * 6);
}

TEST(Cost, GradientsOfAConvolutionDoTheSameWork) {
    Window window = Window::of({3, 3});
    window.stride = {2, 2};
    const ValueType x = real({4, 8, 9, 9}), w = real({16, 8, 3, 3}), dy = real({4, 16, 4, 4});
    const double work = inferred(ConvOp{window, 1}, {x, w}).work;
    EXPECT_EQ(work, 2.0 * 4 * 16 * 16 * 8 * 9);
    const Cost input = inferred(ConvGradInputOp{window, 1, {9, 9}}, {dy, w}), weight = inferred(ConvGradWeightOp{window, 1}, {x, dy});
    EXPECT_EQ(input.work, work);
    EXPECT_EQ(input.depth, 4 + 2 + 2);
    EXPECT_EQ(weight.work, work);
    EXPECT_EQ(weight.depth, 2 + 2 + 2);
}

TEST(Cost, LocalAndFullyConnected) {
    const ValueType x = real({4, 20}), w = real({10, 20}), dy = real({4, 10});
    EXPECT_EQ(inferred(LinearOp{}, {x, w}).work, 2 * 4 * 200);
    EXPECT_EQ(inferred(LinearOp{}, {x, w}).depth, 5);
    EXPECT_EQ(inferred(LinearGradInputOp{}, {dy, w}).depth, 4);
    EXPECT_EQ(inferred(LinearGradWeightOp{}, {x, dy}).depth, 2);
    EXPECT_EQ(inferred(LinearGradWeightOp{}, {x, dy}).work, 2 * 4 * 200);
    EXPECT_EQ(inferred(LocalConvOp{Window::of({3})}, {real({2, 3, 8}), real({5, 6, 3, 3})}).work, 2 * 2 * (5 * 6) * 9);
}

TEST(Cost, Pools) {
    Builder b(Mode::Training);
    const ValueId x = b.input({1, 2, 8, 8});
    b.max_pool("m", x, {.kernel = {2, 2}});
    EXPECT_EQ(last(b).work, 2 * 16 * 3);
    EXPECT_EQ(last(b).depth, 2);
    b.average_pool("a", x, {.kernel = {3, 3}, .stride = {2, 2}});
    EXPECT_EQ(last(b).work, 2 * 9 * 9);  // eight additions and a division
    EXPECT_EQ(last(b).depth, 2 + 2 + 1);
    b.adaptive_pool("g", x, {1, 1});
    EXPECT_EQ(last(b).work, 2 * 64);
    EXPECT_EQ(last(b).depth, 6 + 1);
    b.adaptive_pool("o", x, {3, 1});  // cells of 3, 4 and 3 rows
    EXPECT_EQ(last(b).work, 2 * 10 * 8);
}

TEST(Cost, ElementwiseAndRearranging) {
    Builder b(Mode::Training);
    const ValueId x = b.input({2, 3, 4, 4});
    b.relu("r", x);
    EXPECT_EQ(last(b).work, 96);
    EXPECT_EQ(last(b).depth, 1);
    b.add("s", {x, x, x});
    EXPECT_EQ(last(b).work, 2 * 96);
    EXPECT_EQ(last(b).depth, 2);
    b.reshape("v", x, {2, 48});
    EXPECT_EQ(last(b).work, 0);
    EXPECT_EQ(last(b).moved, 0);
    b.slice("part", x, {0, 1, 0, 0}, {2, 1, 4, 4});
    EXPECT_EQ(last(b).moved, 2 * 32);
}

TEST(Cost, StatisticsAreTwoTrees) {
    const Cost cost = inferred(BatchStatsOp{}, {real({2, 3, 4, 4})});
    EXPECT_EQ(cost.work, 2 * (96 - 3) + 2 * 96 + 2 * 3);
    EXPECT_EQ(cost.depth, 2 * 5 + 4);
}

TEST(Cost, NothingIsNoWork) {  // a rank may have no samples
    EXPECT_EQ(cost_of(BiasGradOp{}, {{{0, 256}}}, {{{256}}}).work, 0);
    EXPECT_EQ(cost_of(BiasGradOp{}, {{{4, 0}}}, {{{0}}}).work, 0);
}

TEST(Cost, DepthIsTheLongestPath) {
    Builder b(Mode::Training);
    const ValueId x = b.input({1, 4, 8, 8});
    const ConvSpec narrow{.filters = 4, .kernel = {1, 1}}, wide{.filters = 4, .kernel = {3, 3}, .pad = {1, 1}};
    b.add("sum", {b.conv("short", x, narrow), b.conv("long2", b.conv("long1", x, wide), wide)});
    EXPECT_EQ(work_depth(b.graph()).depth, 2 * (2 + 2 + 2));
    EXPECT_EQ(work_depth(b.graph()).work, 64 * 4 * 4 * (1 + 9 + 9));
}

}  // namespace
}  // namespace convoy
