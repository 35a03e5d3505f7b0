// Gradients of layers: convolutions, poolings, resampling, normalisation.
#include "kernels/reference/gradient_testing.h"

namespace convoy::ref {
namespace {

using namespace testing;

constexpr WindowLimits kSmall{.length = 6, .kernel = 3, .stride = 3, .dilation = 2, .pad_least = -1, .pad_most = 2};
constexpr WindowLimits kPool{.length = 7, .kernel = 3, .stride = 3, .dilation = 1, .pad_least = 0, .pad_most = 1};

struct ConvShapes {
    Window window;
    int64_t groups;
    Shape x, w, y;
};
ConvShapes draw_conv(Draw& draw) {
    const WindowProblem p = draw_window(draw, kSmall);
    const int64_t batch = draw.between(1, 2), groups = draw.between(1, 2), channels = draw.between(1, 3), filters = draw.between(1, 3);
    return {p.window, groups, join({batch, channels * groups}, p.in), join({filters * groups, channels}, p.window.kernel),
            join({batch, filters * groups}, p.out)};
}

TEST(Gradient, Conv) {
    for_shapes("conv", [](Function& f, Draw& draw) {
        const auto s = draw_conv(draw);
        f.check(ConvOp{s.window, s.groups}, {f.input("x", draw.normal(s.x)), f.parameter("w", draw.normal(s.w))});
    });
}

TEST(Gradient, TransposedConv) {
    for_shapes("transposed conv", [](Function& f, Draw& draw) {
        const auto s = draw_conv(draw);
        f.check(ConvGradInputOp{s.window, s.groups, s.x.slice(2)}, {f.input("x", draw.normal(s.y)), f.parameter("w", draw.normal(s.w))});
    });
}

TEST(Gradient, Linear) {
    for_shapes("linear", [](Function& f, Draw& draw) {
        const int64_t batch = draw.between(1, 6), inputs = draw.between(1, 9), outputs = draw.between(1, 9);
        f.check(LinearOp{}, {f.input("x", draw.normal({batch, inputs})), f.parameter("w", draw.normal({outputs, inputs}))});
    });
}

TEST(Gradient, LocalConv) {
    for_shapes("local conv", [](Function& f, Draw& draw) {
        const WindowProblem p = draw_window(draw, kSmall);
        const int64_t batch = draw.between(1, 2), channels = draw.between(1, 2), filters = draw.between(1, 2);
        const Shape w = join(join({filters}, p.out), join({channels}, p.window.kernel));
        f.check(LocalConvOp{p.window}, {f.input("x", draw.normal(join({batch, channels}, p.in))), f.parameter("w", draw.normal(w))});
    });
}

TEST(Gradient, Bias) {
    for_shapes("bias", [](Function& f, Draw& draw) {
        const Shape shape = draw_activation(draw);
        const int axis = static_cast<int>(draw.between(0, shape.size() - 1)), rank = static_cast<int>(draw.between(1, shape.size() - axis));
        f.check(BiasOp{axis}, {f.input("x", draw.normal(shape)), f.parameter("b", draw.normal(shape.slice(axis, axis + rank)))});
    });
}

// A window over an input [N, C, ...].
struct MaxPooling {
    Shape input;
    Window window;
};
MaxPooling draw_max_pooling(Draw& draw) {
    const WindowProblem p = draw_window(draw, {.length = 7, .kernel = 3, .stride = 3, .dilation = 2, .pad_least = 0, .pad_most = 0});
    Window window = p.window;
    // Padding that leaves an element in every window.
    for (int i = 0; i < window.rank(); ++i) {
        const bool room = window.dilation[i] == 1 && window.kernel[i] > 1;
        window.pad_lo[i] = room ? draw.between(0, 1) : 0;
        window.pad_hi[i] = room ? draw.between(0, 1) : 0;
    }
    return {join(draw.dims(2, 1, 3), p.in), window};
}

TEST(Gradient, MaxPool) {
    for_shapes("max pool", [](Function& f, Draw& draw) {
        const auto [input, window] = draw_max_pooling(draw);
        f.check(MaxPoolOp{window}, {f.input("x", draw.separated(input, kGap))});
    });
}

TEST(Gradient, MaxPoolOfAnActivation) {
    for (const Unary kind : {Unary::Relu, Unary::Relu6, Unary::LeakyRelu, Unary::Sigmoid, Unary::Tanh})
        for (const bool shared : {false, true})
            for_shapes(fmt::format("max pool of {}{}", name_of(kind), shared ? ", read twice" : ""), [&](Function& f, Draw& draw) {
                const auto [input, window] = draw_max_pooling(draw);
                const ValueId y = f.graph.add1(UnaryOp{kind, 0.2}, {f.input("x", draw.separated(input, kGap))}, "activation");
                const ValueId pooled = f.graph.add(MaxPoolOp{window}, {y}, "pool")[0];
                if (!shared) return f.check(pooled);
                const ValueId sum = f.graph.add1(SumToOp{Dims::filled(input.size(), 1)}, {y}, "sum");
                f.check(AddOp{}, {pooled, f.graph.add1(ExpandOp{f.graph.shape(pooled)}, {sum}, "spread")});
            });
}

// The gradient goes through the activation before it goes through the pooling, and reads the maxima; but not where the activation's own gradient is asked for.
TEST(Gradient, OfAPooledActivationReadsTheMaxima) {
    for (const bool asked : {false, true}) {
        Graph graph;
        const ValueId x = graph.add_input("x", {{2, 3, 8}}), y = graph.add1(UnaryOp{Unary::Relu}, {x}, "activation");
        const ValueId pooled = graph.add(MaxPoolOp{Window::of({2})}, {y}, "pool")[0], c = graph.add_input("c", graph.value(pooled).type);
        const auto gradients = backward(graph, {{pooled, c}}, asked ? std::vector{x, y} : std::vector{x});
        for (const ValueId g : gradients) EXPECT_NE(g, kNone);
        int found = 0;
        for (const Node& node : graph.nodes()) {
            if (!std::holds_alternative<UnaryGradOp>(node.op)) continue;
            ++found;
            EXPECT_EQ(node.inputs[0], asked ? y : pooled);
        }
        EXPECT_EQ(found, 1);
    }
}

TEST(Gradient, AveragePool) {
    for_shapes("average pool", [](Function& f, Draw& draw) {
        const WindowProblem p = draw_window(draw, kPool);
        Dims overflow;
        for (int i = 0; i < p.in.size(); ++i) overflow.push_back(draw.between(0, p.window.stride[i] - 1));
        f.check(AveragePoolOp{p.window, draw.coin(), draw.coin() ? overflow : Dims{}},
                {f.input("x", draw.normal(join(draw.dims(2, 1, 3), p.in)))});
    });
}

TEST(Gradient, AdaptivePool) {
    for_shapes("adaptive pool", [](Function& f, Draw& draw) {
        const int rank = static_cast<int>(draw.between(1, 3));
        const Dims out = draw.coin() ? draw.dims(rank, 1, 5) : Dims::filled(rank, 1);
        f.check(AdaptivePoolOp{out}, {f.input("x", draw.normal(join(draw.dims(2, 1, 3), draw.dims(rank, 1, 6))))});
    });
}

void check_upsample(const std::string& family, Resample mode) {
    for_shapes(family, [&](Function& f, Draw& draw) {
        const int rank = static_cast<int>(draw.between(1, 3));
        const bool align = mode == Resample::Linear && draw.coin();
        f.check(UpsampleOp{mode, draw.dims(rank, 1, 8), align},
                {f.input("x", draw.normal(join(draw.dims(2, 1, 3), draw.dims(rank, 1, 5))))});
    });
}
TEST(Gradient, UpsampleNearest) { check_upsample("upsample nearest", Resample::Nearest); }
TEST(Gradient, UpsampleLinear) { check_upsample("upsample linear", Resample::Linear); }

TEST(Gradient, BatchNormTraining) {
    for_shapes("batch norm", [](Function& f, Draw& draw) {
        Shape shape = draw_activation(draw);
        shape[0] = draw.between(8, 10);
        const ValueId x = f.input("x", draw.normal(shape));
        const ValueId stats = f.graph.add1(BatchStatsOp{}, {x}, "norm");
        f.check(BatchNormalizeOp{1e-3},
                {x, stats, f.parameter("gamma", draw.normal({shape[1]})), f.parameter("beta", draw.normal({shape[1]}))});
    });
}

TEST(Gradient, BatchNormFixed) {
    for_shapes("batch norm fixed", [](Function& f, Draw& draw) {
        const Shape shape = draw_activation(draw);
        Tensor variance = draw.normal({shape[1]});
        for (auto& v : variance.as<double>()) v = v * v + 0.2;
        const ValueId mean = f.constant("mean", draw.normal({shape[1]}), Element::Precise),
                      var = f.constant("variance", variance, Element::Precise);
        const ValueId stats = f.graph.add1(RunningStatsOp{}, {mean, var}, "norm");
        const ValueId x = f.input("x", draw.normal(shape));
        f.check(BatchNormalizeOp{1e-3},
                {x, stats, f.parameter("gamma", draw.normal({shape[1]})), f.parameter("beta", draw.normal({shape[1]}))});
    });
}

void check_cell_norm(Function& f, Draw& draw, const Shape& shape, const Cells& cells) {
    const Shape affine = cells.groups > 0 ? Shape{shape[1]} : shape.slice(cells.axis);
    const ValueId x = f.input("x", draw.normal(shape));
    const ValueId stats = f.graph.add1(CellStatsOp{cells}, {x}, "norm");
    f.check(CellNormalizeOp{cells, 1e-3}, {x, stats, f.parameter("gamma", draw.normal(affine)), f.parameter("beta", draw.normal(affine))});
}

TEST(Gradient, GroupNorm) {
    for_shapes("group norm", [](Function& f, Draw& draw) {
        const int64_t groups = draw.between(1, 3);
        const Shape shape = join({draw.between(1, 3), groups * draw.between(1, 3)}, draw.dims(static_cast<int>(draw.between(2, 3)), 3, 4));
        check_cell_norm(f, draw, shape, {.groups = groups});
    });
}

TEST(Gradient, LayerNorm) {
    for_shapes("layer norm", [](Function& f, Draw& draw) {
        Shape shape = draw.dims(static_cast<int>(draw.between(2, 4)), 1, 4);
        shape[shape.size() - 1] = draw.between(8, 10);
        check_cell_norm(f, draw, shape, {.groups = 0, .axis = static_cast<int>(draw.between(1, shape.size() - 1))});
    });
}

TEST(Gradient, Lrn) {
    for_shapes("lrn", [](Function& f, Draw& draw) {
        Shape shape = draw_activation(draw);
        shape[1] = draw.between(1, 8);
        f.check(LrnOp{draw.between(1, 6), draw.real(0.01, 0.5), draw.real(0.5, 1), draw.real(1, 2)}, {f.input("x", draw.normal(shape))});
    });
}

}  // namespace
}  // namespace convoy::ref
