// Where a plan puts things: which labels are split, which moves follow, and what is refused.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "model/autodiff.h"
#include "model/builder.h"
#include "program/localise.h"
#include "program/placed_graph.h"
#include "program/plan_spec.h"
#include "program/signature.h"

namespace convoy {
namespace {

Model model_of(int64_t batch = 4, int64_t size = 8) {
    Builder b(Mode::Training);
    ValueId x = b.input({batch, 3, size, size});
    x = b.relu("relu1", b.batch_norm("bn1", b.conv("conv1", x, {.filters = 8, .kernel = {3, 3}, .pad = {1, 1}, .bias = false})));
    x = b.relu("relu2", b.conv("conv2", x, {.filters = 8, .kernel = {3, 3}, .pad = {1, 1}}));
    x = b.flatten("flatten", b.adaptive_pool("gap", x, {1, 1}));
    b.graph().add_output("out", b.linear("fc", x, {.outputs = 6}));
    return {"small", b.take(), {{.output = "out"}}, 6};
}

Graph graph_of(int64_t batch = 4, int64_t size = 8) {
    return training_graph(model_of(batch, size), {.rule = {.rule = Rule::Momentum}}, {});
}

int count_moves(const PlacedGraph& placed, Move::Kind kind, const std::string& layer = "") {
    return static_cast<int>(std::count_if(placed.nodes.begin(), placed.nodes.end(), [&](const PlacedNode& n) {
        return n.node == kNone && n.move.kind == kind && (layer.empty() || n.layer == layer);
    }));
}

PlacedGraph placed_as(const std::string& spec, int ranks = 0) {
    const Graph graph = graph_of();
    return place(graph, plan_from_spec(spec, ranks, graph).plan);
}

std::string message_of(const std::string& spec, int ranks = 0) {
    try {
        plan_from_spec(spec, ranks, graph_of());
    } catch (const Error& e) {
        return e.what();
    }
    return "";
}

TEST(Placement, OneRankMovesNothing) {
    const PlacedGraph placed = place(graph_of(), Plan::single());
    EXPECT_TRUE(std::none_of(placed.nodes.begin(), placed.nodes.end(), [](const PlacedNode& n) { return n.node == kNone; }));
}

TEST(Placement, DataParallelismReducesEachGradientOnceAndMergesStatistics) {
    const PlacedGraph placed = placed_as("sample:4");
    for (const char* parameter : {"conv1.weight", "conv2.weight", "conv2.bias", "fc.weight", "fc.bias"})
        EXPECT_EQ(count_moves(placed, Move::Kind::AllReduce, parameter), 1) << parameter;
    EXPECT_EQ(count_moves(placed, Move::Kind::MergeStatistics), 1);
    EXPECT_EQ(count_moves(placed, Move::Kind::Exchange) + count_moves(placed, Move::Kind::AllGather), 0);
}

TEST(Placement, LocalBatchNormMergesOnlyForRunningStatistics) {
    const Graph graph = graph_of();
    Plan plan = plan_from_spec("sample:2", 0, graph).plan;
    for (LayerPlan& entry : plan.layers) entry.global_norm = false;
    const PlacedGraph placed = place(graph, plan);
    for (const PlacedNode& node : placed.nodes) {
        if (node.node == kNone || !std::holds_alternative<BatchNormalizeOp>(graph.node(node.node).op)) continue;
        EXPECT_FALSE(placed.values[static_cast<size_t>(node.inputs[1])].distribution.partial.empty());
    }
}

TEST(Placement, StationaryXSumsTheOutputAndGathersItsGradientOnce) {
    const PlacedGraph placed = placed_as("channel:4@x");
    EXPECT_EQ(count_moves(placed, Move::Kind::ReduceScatter, "conv2"), 1);
    EXPECT_EQ(count_moves(placed, Move::Kind::AllGather, "conv2"), 1);
}

TEST(Placement, ShardedStateScattersGradientsAndGathersWeights) {
    const PlacedGraph placed = placed_as("zero", 2);
    EXPECT_EQ(count_moves(placed, Move::Kind::ReduceScatter, "fc.weight"), 1);
    EXPECT_EQ(count_moves(placed, Move::Kind::AllGather, "fc.weight"), 1);
    EXPECT_EQ(count_moves(placed, Move::Kind::AllReduce, "fc.weight"), 0);
}

TEST(Placement, AnEntryThatCannotBeDoneIsRefusedWithWhatWould) {
    const Graph graph = graph_of();
    Plan plan = plan_from_spec("sample:2", 0, graph).plan;
    auto& entry = *std::find_if(plan.layers.begin(), plan.layers.end(), [](const LayerPlan& l) { return l.layers == "conv2"; });
    entry.input = {{AxisPlacement::Kind::Split, 1}};  // channels, with the whole weight
    try {
        place(graph, plan);
        FAIL();
    } catch (const Error& e) {
        const std::string what = e.what();
        EXPECT_NE(what.find("\"conv2\""), std::string::npos) << what;
        EXPECT_NE(what.find("input split 1, weight split 1"), std::string::npos) << what;
    }
}

TEST(PlanSpec, LayersThatCannotFollowAreListed) {
    const UniformPlan uniform = plan_from_spec("channel:4@x", 0, graph_of());
    ASSERT_EQ(uniform.unfollowed.size(), 1u);
    EXPECT_EQ(uniform.unfollowed[0].layer, "conv1");
    EXPECT_EQ(uniform.unfollowed[0].reason, "3 input channels on 4 ranks");
    const UniformPlan tall = plan_from_spec("height:2", 0, graph_of());
    ASSERT_EQ(tall.unfollowed.size(), 1u);
    EXPECT_EQ(tall.unfollowed[0].layer, "fc");
}

// With filters split by a method that gathers the input, an input of fewer channels than ranks is replicated.
TEST(PlanSpec, AnInputOfFewChannelsIsListed) {
    const UniformPlan uniform = plan_from_spec("channel:4@y", 0, graph_of());
    ASSERT_EQ(uniform.unfollowed.size(), 1u);
    EXPECT_EQ(uniform.unfollowed[0].layer, "conv1");
    EXPECT_EQ(uniform.unfollowed[0].axis, "channel");
    EXPECT_EQ(uniform.unfollowed[0].reason, "3 input channels on 4 ranks");
    EXPECT_EQ(layer_plan(uniform.plan, "conv1").input[0], AxisPlacement{});
    EXPECT_EQ(layer_plan(uniform.plan, "conv1").weight[0], (AxisPlacement{AxisPlacement::Kind::Split, 0}));
    EXPECT_TRUE(plan_from_spec("channel:2@y", 0, graph_of()).unfollowed.empty());
}

// conv1, then layers of 4 groups, depthwise, and of 2, then conv2; all sizes divide.
Graph grouped_graph() {
    Builder b(Mode::Training);
    ValueId x = b.conv("conv1", b.input({4, 8, 8, 8}), {.filters = 16, .kernel = {3, 3}, .pad = {1, 1}, .bias = false});
    for (const int64_t groups : {4, 16, 2})
        x = b.conv("groups" + std::to_string(groups), b.relu("relu" + std::to_string(groups), x),
                   {.filters = 16, .kernel = {3, 3}, .pad = {1, 1}, .groups = groups, .bias = false});
    x = b.conv("conv2", x, {.filters = 8, .kernel = {1, 1}, .bias = false});
    b.graph().add_output("out", b.flatten("flatten", b.adaptive_pool("gap", x, {1, 1})));
    return training_graph({"grouped", b.take(), {{.output = "out"}}, 8}, {.rule = {.rule = Rule::Momentum}}, {});
}

int traffic_of(const PlacedGraph& placed, const std::string& layer) {
    return static_cast<int>(std::count_if(placed.nodes.begin(), placed.nodes.end(), [&](const PlacedNode& n) {
        return n.node == kNone && n.move.kind != Move::Kind::Slice && (n.layer == layer || n.layer == layer + ".weight");
    }));
}

TEST(PlanSpec, GroupsAreSplitWithoutTrafficWhateverTheMethod) {
    const Graph graph = grouped_graph();
    for (const char* spec : {"channel:4@x", "channel:4@y", "channel:2,filter:2@w", "filter:2,channel:2@w"}) {
        const UniformPlan uniform = plan_from_spec(spec, 0, graph);
        const PlacedGraph placed = place(graph, uniform.plan);
        for (const char* layer : {"groups4", "groups16"}) {
            EXPECT_EQ(traffic_of(placed, layer), 0) << layer << " under " << spec;
            for (const AxisPlacement& p : layer_plan(uniform.plan, layer).weight)
                EXPECT_EQ(p, (AxisPlacement{AxisPlacement::Kind::Split, 0})) << layer << " under " << spec;
        }
        EXPECT_GT(traffic_of(placed, "conv2"), 0) << spec;
        EXPECT_EQ(uniform.unfollowed.size(), 1u) << spec;
        EXPECT_EQ(uniform.unfollowed[0].layer, "groups2") << spec;
        EXPECT_EQ(uniform.unfollowed[0].reason, "2 groups on 4 ranks") << spec;
    }
    EXPECT_EQ(traffic_of(place(graph, plan_from_spec("channel:2@x", 0, graph).plan), "groups2"), 0);
}

// Too few groups for both axes, then for any: every axis that does nothing is listed.
TEST(PlanSpec, AxesWithoutGroupsAreListed) {
    const Graph graph = grouped_graph();
    const auto axes_of = [&](const std::string& spec, const std::string& layer) {
        std::vector<std::string> axes;
        for (const Unfollowed& u : plan_from_spec(spec, 0, graph).unfollowed)
            if (u.layer == layer) axes.push_back(u.axis);
        std::sort(axes.begin(), axes.end());
        return axes;
    };
    EXPECT_EQ(axes_of("channel:2,filter:4@w", "groups2"), std::vector<std::string>{"filter"});
    EXPECT_EQ(axes_of("channel:4,filter:2@w", "groups2"), std::vector<std::string>{"channel"});
    EXPECT_EQ(axes_of("channel:3,filter:3@w", "groups2"), (std::vector<std::string>{"channel", "filter"}));
    for (const char* spec : {"channel:2,filter:4@w", "channel:4,filter:2@w", "channel:3,filter:3@w"})
        EXPECT_NO_THROW(place(graph, plan_from_spec(spec, 0, graph).plan)) << spec;
}

// Its last layer has 6 outputs: on 8 ranks it is replicated, whatever the method.
TEST(PlanSpec, FewFiltersAreReplicated) {
    for (const char* spec : {"channel:8@x", "channel:8@y", "channel:4,filter:2@w"}) {
        const Graph graph = graph_of(8);
        const UniformPlan plan = plan_from_spec(spec, 0, graph);
        EXPECT_TRUE(std::any_of(plan.unfollowed.begin(), plan.unfollowed.end(), [](const Unfollowed& u) { return u.layer == "fc"; }))
            << spec;
        EXPECT_NO_THROW(place(graph, plan.plan)) << spec;
    }
}

TEST(PlanSpec, BadOnesSayWhatIsWrong) {
    EXPECT_NE(message_of("sampel:2").find("did you mean \"sample\""), std::string::npos) << message_of("sampel:2");
    EXPECT_NE(message_of("dta", 2).find("did you mean \"data\""), std::string::npos) << message_of("dta", 2);
    EXPECT_NE(message_of("sample:0").find("sample:0"), std::string::npos);
    EXPECT_NE(message_of("sample:2,sample:2").find("twice"), std::string::npos);
    EXPECT_NE(message_of("channel:2").find("@x"), std::string::npos);
    EXPECT_NE(message_of("sample:2@x").find("splits no channels"), std::string::npos);
    EXPECT_NE(message_of("channel:2@w").find("filter:B"), std::string::npos);
    EXPECT_NE(message_of("channel:2@z").find("@x, @y or @w"), std::string::npos);
    EXPECT_NE(message_of("sample:4", 3).find("needs 4 ranks"), std::string::npos);
    EXPECT_NE(message_of("data").find("--ranks"), std::string::npos);
}

TEST(PlanSpec, SurvivesJson) {
    const Plan plan = plan_from_spec("channel:2,filter:2@w", 0, graph_of()).plan;
    EXPECT_EQ(plan_from_json(to_json(plan)), plan);
    const Plan sharded = plan_from_spec("zero", 4, graph_of()).plan;
    EXPECT_EQ(plan_from_json(to_json(sharded)), sharded);
}

// A convolution's parts, put together, read every input row that the whole reads, and their windows stay in phase.
TEST(Localise, WindowsOfPartsLieWhereThoseOfTheWholeDo) {
    for (const int64_t kernel : {1, 2, 3, 5})
        for (const int64_t stride : {1, 2, 3})
            for (const int64_t pad : {0, 1, 2})
                for (const int64_t length : {5, 8, 13}) {
                    Window w = Window::of({kernel});
                    w.stride = {stride};
                    w.pad_lo = w.pad_hi = {pad};
                    const int64_t out = w.output(0, length);
                    if (out < 2) continue;
                    const std::vector<ValueType> in{{{1, 1, length}}, {{1, 1, kernel}}}, made{{{1, 1, out}}};
                    for (int64_t cut = 0; cut <= out; ++cut) {
                        const Box part = Box::whole({1, 1, out}).with(2, cut, out);
                        const LocalOp local =
                            localise(ConvOp{w, 1}, in, made, {Box::whole({1, 1, length}), Box::whole({1, 1, kernel})}, {part});
                        if (part.empty() || local.inputs[0].empty()) continue;  // all in the padding
                        const Window& lw = std::get<ConvOp>(local.op).window;
                        // Global position of the first tap of the first window, by both.
                        EXPECT_EQ(cut * stride - pad, local.inputs[0].begin(2) - lw.pad_lo[0]);
                        EXPECT_GE(lw.output(0, local.inputs[0].shape[2]), part.shape[2]);
                    }
                }
}

TEST(Signature, DimsWithOneLabelHaveOneLength) {
    const Graph graph = graph_of();
    for (const Node& node : graph.nodes()) {
        std::vector<ValueType> in, out;
        for (const ValueId v : node.inputs) in.push_back(graph.value(v).type);
        for (const ValueId v : node.outputs) out.push_back(graph.value(v).type);
        const Signature s = signature_of(node.op, in, out);
        ASSERT_EQ(s.inputs.size(), in.size());
        ASSERT_EQ(s.outputs.size(), out.size());
        const auto check = [&](const std::vector<DimRoles>& operands, const std::vector<ValueType>& types) {
            for (size_t i = 0; i < operands.size(); ++i)
                for (size_t d = 0; d < operands[i].size(); ++d) {
                    const DimRole& role = operands[i][d];
                    if (role.label == kNone || role.derived) continue;
                    EXPECT_EQ(s.labels[static_cast<size_t>(role.label)].length * role.scale, types[i].shape[static_cast<int>(d)])
                        << name_of(node.op);
                }
        };
        check(s.inputs, in);
        check(s.outputs, out);
    }
}

}  // namespace
}  // namespace convoy
