#include "model/builder.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"

namespace convoy {
namespace {

const StateSpec& state(const Graph& graph, const std::string& name) {
    const auto id = graph.find_state(name);
    if (!id) fail("no state \"{}\"", name);
    return graph.states()[static_cast<size_t>(graph.value(*id).state)];
}

// The text of the Error that `make` throws; "" when it throws none.
template <class Make>
std::string error_of(Make make) {
    try {
        make();
    } catch (const Error& e) {
        return e.what();
    }
    return "";
}

TEST(Builder, ConvAddsItsParametersAndABias) {
    Builder b(Mode::Training);
    const ValueId y = b.conv("c", b.input({2, 6, 9, 9}),
                             {.filters = 8, .kernel = {3, 5}, .stride = {2, 1}, .pad = {1, 0}, .pad_hi = {0, 2}, .groups = 2});
    EXPECT_EQ(b.shape(y), (Shape{2, 8, 4, 7}));
    EXPECT_EQ(state(b.graph(), "c.weight").shape, (Shape{8, 3, 3, 5}));
    EXPECT_TRUE(state(b.graph(), "c.weight").decays);
    EXPECT_EQ(state(b.graph(), "c.bias").shape, Shape{8});
    EXPECT_FALSE(state(b.graph(), "c.bias").decays);
    ASSERT_EQ(b.graph().nodes().size(), 2u);
    EXPECT_TRUE(std::holds_alternative<BiasOp>(b.graph().node(1).op));
    EXPECT_EQ(b.graph().node(1).layer, "c");
}

TEST(Builder, InitialisationFollowsTheFans) {
    Builder b(Mode::Training);
    const ValueId x = b.input({1, 4, 5, 5});
    using Kind = Initializer::Kind;
    const auto begins = [&](const std::string& name, Init init) {
        b.conv(name, x, {.filters = 8, .kernel = {3, 3}, .init = init, .zero_bias = init != Init::Default});
        return state(b.graph(), name + ".weight").initializer;
    };
    EXPECT_EQ(begins("default", Init::Default), (Initializer{.kind = Kind::Uniform, .value = 1 / std::sqrt(36.0)}));
    EXPECT_EQ(begins("xu", Init::XavierUniform), (Initializer{.kind = Kind::Uniform, .value = std::sqrt(6.0 / (36 + 72))}));
    EXPECT_EQ(begins("xn", Init::XavierNormal), (Initializer{.kind = Kind::Normal, .value = std::sqrt(2.0 / (36 + 72))}));
    EXPECT_EQ(begins("hu", Init::HeUniform), (Initializer{.kind = Kind::Uniform, .value = std::sqrt(6.0 / 36)}));
    EXPECT_EQ(begins("hn", Init::HeNormal), (Initializer{.kind = Kind::Normal, .value = std::sqrt(2.0 / 36)}));
    EXPECT_EQ(begins("ho", Init::HeNormalFanOut), (Initializer{.kind = Kind::Normal, .value = std::sqrt(2.0 / 72)}));
    EXPECT_EQ(begins("n", Init::Normal001), (Initializer{.kind = Kind::Normal, .value = 0.01}));
    EXPECT_EQ(state(b.graph(), "default.bias").initializer, (Initializer{.kind = Kind::Uniform, .value = 1 / std::sqrt(36.0)}));
    EXPECT_EQ(state(b.graph(), "n.bias").initializer, (Initializer{.kind = Kind::Constant, .value = 0}));
}

TEST(Builder, ConvTransposeInvertsTheShapeOfAConv) {
    Builder b(Mode::Training);
    const ValueId y = b.conv_transpose(
        "t", b.input({2, 6, 5, 4}),
        {.filters = 4, .kernel = {3, 2}, .stride = {2, 3}, .dilation = {2, 1}, .pad = {1, 0}, .output_padding = {1, 0}, .groups = 2});
    EXPECT_EQ(b.shape(y), (Shape{2, 4, (5 - 1) * 2 - 2 + 2 * 2 + 1 + 1, (4 - 1) * 3 + 1 + 1}));
    EXPECT_EQ(state(b.graph(), "t.weight").shape, (Shape{6, 2, 3, 2}));
    EXPECT_EQ(state(b.graph(), "t.bias").shape, Shape{4});
}

TEST(Builder, LocalConvHasWeightsPerPosition) {
    Builder b(Mode::Training);
    const ValueId y = b.local_conv("l", b.input({2, 3, 7}), {.filters = 4, .kernel = {3}, .stride = {2}});
    EXPECT_EQ(b.shape(y), (Shape{2, 4, 3}));
    EXPECT_EQ(state(b.graph(), "l.weight").shape, (Shape{4, 3, 3, 3}));
    EXPECT_EQ(state(b.graph(), "l.bias").shape, (Shape{4, 3}));
}

TEST(Builder, SharedLayersUseOneParameter) {
    Builder b(Mode::Training);
    ValueId x = b.input({2, 4, 6, 6});
    x = b.conv("a", x, {.filters = 4, .kernel = {3, 3}, .pad = {1, 1}});
    x = b.conv("b", x, {.filters = 4, .kernel = {3, 3}, .pad = {1, 1}, .share = "a"});
    EXPECT_EQ(b.graph().states().size(), 2u);
    EXPECT_EQ(b.graph().node(0).inputs[1], b.graph().node(2).inputs[1]);
    EXPECT_EQ(b.graph().node(1).inputs[1], b.graph().node(3).inputs[1]);
    EXPECT_EQ(b.graph().node(2).layer, "b");
    EXPECT_EQ(error_of([&] {
                  b.conv("c", x, {.filters = 4, .kernel = {3, 3}, .share = "z"});
              }),
              "conv \"c\": shares \"z.weight\", which does not exist");
    EXPECT_EQ(error_of([&] {
                  b.conv("d", x, {.filters = 8, .kernel = {3, 3}, .share = "a"});
              }),
              "conv \"d\": shares \"a.weight\", which is 4x4x3x3, expected 8x4x3x3");
    EXPECT_EQ(error_of([&] {
                  b.conv("a", x, {.filters = 4, .kernel = {3, 3}});
              }),
              "conv \"a\": \"a.weight\" exists already; give the layer another name, or share the parameters");
}

// PyTorch's rule, from its definition: as many windows as start inside the input or the padding before it.
int64_t ceil_windows(int64_t in, int64_t kernel, int64_t stride, int64_t pad) {
    int64_t out = (in + 2 * pad - kernel + stride - 1) / stride + 1;
    return (out - 1) * stride >= in + pad ? out - 1 : out;
}

TEST(Builder, CeilModeOfPools) {
    for (int64_t in = 4; in < 12; ++in)
        for (int64_t kernel = 1; kernel <= 4; ++kernel)
            for (int64_t stride = 1; stride <= 4; ++stride)
                for (int64_t pad = 0; 2 * pad <= kernel; ++pad) {
                    Builder b(Mode::Training);
                    const ValueId x = b.input({1, 2, in});
                    const PoolSpec spec{.kernel = {kernel}, .stride = {stride}, .pad = {pad}, .ceil = true};
                    const Shape expected{1, 2, ceil_windows(in, kernel, stride, pad)};
                    EXPECT_EQ(b.shape(b.max_pool("m", x, spec)), expected) << in << " " << kernel << " " << stride << " " << pad;
                    EXPECT_EQ(b.shape(b.average_pool("a", x, spec)), expected) << in << " " << kernel << " " << stride << " " << pad;
                    const auto& average = std::get<AveragePoolOp>(b.graph().node(1).op);
                    EXPECT_EQ(average.window.pad_hi, Dims{pad});
                }
    Builder b(Mode::Training);
    const ValueId x = b.input({1, 1, 6, 7});
    b.max_pool("m", x, {.kernel = {3, 3}, .stride = {2, 2}, .ceil = true});
    EXPECT_EQ(std::get<MaxPoolOp>(b.graph().node(0).op).window.pad_hi, (Dims{1, 0}));
    b.average_pool("a", x, {.kernel = {3, 3}, .stride = {2, 2}, .ceil = true, .count_padding = false});
    EXPECT_EQ(std::get<AveragePoolOp>(b.graph().node(1).op).overflow, (Dims{1, 0}));
    EXPECT_EQ(b.shape(b.max_pool("floor", x, {.kernel = {3, 3}, .stride = {2, 2}})), (Shape{1, 1, 2, 3}));
}

TEST(Builder, BatchNormFollowsTheMode) {
    for (const Mode mode : {Mode::Training, Mode::Evaluation}) {
        Builder b(mode);
        b.batch_norm("n", b.input({4, 3, 5, 5}), 1e-3, 0.2);
        const Graph& g = b.graph();
        for (const char* name : {"n.weight", "n.bias", "n.running_mean", "n.running_var"}) {
            EXPECT_EQ(state(g, name).shape, Shape{3});
            EXPECT_FALSE(state(g, name).decays);
        }
        EXPECT_EQ(state(g, "n.weight").kind, StateKind::Parameter);
        EXPECT_EQ(state(g, "n.running_var").kind, StateKind::Buffer);
        EXPECT_EQ(state(g, "n.running_var").initializer.value, 1);
        if (mode == Mode::Training) {
            ASSERT_EQ(g.nodes().size(), 3u);
            EXPECT_TRUE(std::holds_alternative<BatchStatsOp>(g.node(0).op));
            EXPECT_EQ(std::get<RunningUpdateOp>(g.node(1).op), (RunningUpdateOp{0.2, 100}));
            ASSERT_EQ(g.stores().size(), 2u);
            EXPECT_EQ(g.stores()[1].state, *g.find_state("n.running_var"));
        } else {
            ASSERT_EQ(g.nodes().size(), 2u);
            EXPECT_TRUE(std::holds_alternative<RunningStatsOp>(g.node(0).op));
            EXPECT_TRUE(g.stores().empty());
        }
        EXPECT_EQ(std::get<BatchNormalizeOp>(g.nodes().back().op).epsilon, 1e-3);
    }
}

TEST(Builder, DropoutFollowsTheMode) {
    const auto nodes = [](Mode mode, bool dropout) {
        Builder b(mode, dropout);
        b.dropout("d", b.input({2, 3}), 0.3);
        return b.graph().nodes().size();
    };
    EXPECT_EQ(nodes(Mode::Training, true), 1u);
    EXPECT_EQ(nodes(Mode::Training, false), 0u);
    EXPECT_EQ(nodes(Mode::Evaluation, true), 0u);
    Builder b(Mode::Training);
    b.dropout("d", b.input({2, 3}), 0.3);
    EXPECT_EQ(std::get<DropoutOp>(b.graph().node(0).op), (DropoutOp{0.3, stream_of("d"), 0}));
}

TEST(Builder, OtherNorms) {
    Builder b(Mode::Training);
    const ValueId x = b.input({2, 6, 4});
    EXPECT_EQ(b.shape(b.group_norm("g", x, 3)), b.shape(x));
    EXPECT_EQ(state(b.graph(), "g.weight").shape, Shape{6});
    EXPECT_EQ(b.shape(b.layer_norm("l", x, 2)), b.shape(x));
    EXPECT_EQ(state(b.graph(), "l.bias").shape, Shape{4});
    b.prelu("p", x, true);
    EXPECT_EQ(state(b.graph(), "p.weight"),
              (StateSpec{"p.weight", {6}, {.kind = Initializer::Kind::Constant, .value = 0.25}, StateKind::Parameter, false}));
}

TEST(Builder, MulRepeatsDimsOfOne) {
    Builder b(Mode::Training);
    const ValueId x = b.input({2, 6, 4, 4}), scale = b.adaptive_pool("pool", x, {1, 1});
    EXPECT_EQ(b.shape(b.mul("m", scale, x)), b.shape(x));
    EXPECT_THROW(b.mul("bad", b.input({2, 5, 4, 4}, "other"), x), Error);
}

TEST(Builder, FlattenAndLinear) {
    Builder b(Mode::Training);
    const ValueId x = b.input({2, 6, 4, 4});
    const ValueId y = b.linear("fc", b.flatten("f", x), {.outputs = 10});
    EXPECT_EQ(b.shape(y), (Shape{2, 10}));
    EXPECT_EQ(state(b.graph(), "fc.weight").shape, (Shape{10, 96}));
    EXPECT_EQ(error_of([&] { b.linear("direct", x, {.outputs = 10}); }),
              "linear \"direct\": the input is 2x6x4x4, expected two dims (flatten first)");
}

TEST(Builder, ErrorsNameTheLayer) {
    Builder b(Mode::Training);
    const ValueId x = b.input({1, 4, 2, 2});
    EXPECT_EQ(error_of([&] { b.conv("c", x, {.filters = 4, .kernel = {3}}); }),
              "conv \"c\": kernel 3 has 1 dims, but the input has 2 spatial dims");
    EXPECT_EQ(error_of([&] {
                  b.conv("c", x, {.filters = 4, .kernel = {3, 3}, .stride = {0, 1}});
              }),
              "conv \"c\": stride 0x1, expected at least 1");
    EXPECT_EQ(error_of([&] {
                  b.conv("c", x, {.filters = 6, .kernel = {1, 1}, .groups = 4});
              }),
              "conv \"c\": 4 channels and 6 filters do not divide into 4 groups");
    EXPECT_EQ(error_of([&] { b.conv("c", x, {.filters = 4}); }), "conv \"c\": no kernel given");
    EXPECT_NE(error_of([&] { b.conv("c", x, {.filters = 4, .kernel = {3, 3}}); }).find("conv \"c\": a window of 3"), std::string::npos);
    EXPECT_EQ(error_of([&] {
                  b.max_pool("p", x, {.kernel = {3, 3}, .pad = {2, 2}});
              }),
              "max_pool \"p\": padding 2x2, expected at most half of the kernel 3x3");
    EXPECT_EQ(error_of([&] {
                  b.max_pool("p", x, {.kernel = {5, 5}, .stride = {2, 2}, .ceil = true});
              }),
              "max_pool \"p\": a window of 5x5 does not fit into 2x2");
    EXPECT_EQ(error_of([&] {
                  b.average_pool("p", x, {.kernel = {2, 2}, .dilation = {2, 2}});
              }),
              "average_pool \"p\": dilation 2x2, expected none");
    EXPECT_EQ(error_of([&] {
                  b.conv_transpose("t", x, {.filters = 4, .kernel = {2, 2}, .output_padding = {1, 0}});
              }),
              "conv_transpose \"t\": output padding 1x0, expected less than the stride 1x1");
    EXPECT_EQ(error_of([&] { b.dropout("d", x, 1); }), "dropout \"d\": a probability of 1, expected 0 <= p < 1");
    EXPECT_EQ(error_of([&] {
                  b.batch_norm("n", b.input({1, 4, 1, 1}, "one"));
              }),
              "batch_norm \"n\": training needs more than one element per channel, found an input of 1x4x1x1; use a larger batch or input");
}

}  // namespace
}  // namespace convoy
