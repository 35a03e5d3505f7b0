// Gradients of elementwise and rearranging ops, of losses, and of values that are used more than once.
#include <cmath>

#include "kernels/reference/gradient_testing.h"

namespace convoy::ref {
namespace {

using namespace testing;

void check_unary(Unary kind, bool kinked) {
    for_shapes(std::string(name_of(kind)), [&](Function& f, Draw& draw) {
        const Shape shape = draw_activation(draw);
        f.check(UnaryOp{kind, kind == Unary::LeakyRelu ? draw.real(0.01, 0.3) : 0},
                {f.input("x", kinked ? draw.separated(shape, kGap) : draw.normal(shape))});
    });
}
TEST(Gradient, Relu) { check_unary(Unary::Relu, true); }
TEST(Gradient, Relu6) { check_unary(Unary::Relu6, true); }
TEST(Gradient, LeakyRelu) { check_unary(Unary::LeakyRelu, true); }
TEST(Gradient, Sigmoid) { check_unary(Unary::Sigmoid, false); }
TEST(Gradient, Tanh) { check_unary(Unary::Tanh, false); }
TEST(Gradient, Gelu) { check_unary(Unary::Gelu, false); }
TEST(Gradient, GeluTanh) { check_unary(Unary::GeluTanh, false); }
TEST(Gradient, Silu) { check_unary(Unary::Silu, false); }

// Every function where it is smooth; those without a slope are left out.
TEST(Gradient, Pointwise) {
    for (int k = 0; k < static_cast<int>(Pointwise::Sign); ++k) {
        const auto kind = static_cast<Pointwise>(k);
        for_shapes(std::string(name_of(kind)), [&](Function& f, Draw& draw) {
            const Shape shape = draw_activation(draw);
            Tensor x = draw.separated(shape, kGap);  // away from 0, on both sides
            const bool positive = kind == Pointwise::Log || kind == Pointwise::Sqrt || kind == Pointwise::Power;
            const bool inside = kind == Pointwise::Asin || kind == Pointwise::Acos || kind == Pointwise::Atanh || kind == Pointwise::Tan;
            for (auto& v : x.as<double>()) {
                if (positive) v = 0.5 + std::abs(v);
                if (inside) v = 0.8 * std::tanh(v);
                if (kind == Pointwise::Acosh) v = 1.5 + std::abs(v);
                if (kind == Pointwise::Reciprocal) v = v > 0 ? v + 0.5 : v - 0.5;
            }
            // Corners lie where no element can be: at 0, or outside.
            PointwiseOp op{kind, 0.7, 0.3};
            if (kind == Pointwise::HardSigmoid) op = {kind, 1e-3, 0.5};
            if (kind == Pointwise::Clip) op = {kind, 0, 1e6};
            if (kind == Pointwise::ThresholdedRelu || kind == Pointwise::Shrink) op = {kind, 0, 0.3};
            if (kind == Pointwise::HardSwish)
                for (auto& v : x.as<double>()) v = 2.9 * std::tanh(v);
            f.check(op, {f.input("x", x)});
        });
    }
}

TEST(Gradient, LogSoftmax) {
    for_shapes("log_softmax", [](Function& f, Draw& draw) {
        Shape shape = draw_activation(draw);
        const int axis = static_cast<int>(draw.between(0, shape.size() - 1));
        shape[axis] += 1;
        f.check(LogSoftmaxOp{axis}, {f.input("x", draw.normal(shape))});
    });
}

TEST(Gradient, PRelu) {
    for_shapes("prelu", [](Function& f, Draw& draw) {
        const Shape shape = draw_activation(draw);
        f.check(PReluOp{}, {f.input("x", draw.separated(shape, kGap)), f.parameter("slope", draw.normal({draw.coin() ? shape[1] : 1}))});
    });
}

TEST(Gradient, Softmax) {
    for_shapes("softmax", [](Function& f, Draw& draw) {
        Shape shape = draw_activation(draw);
        const int axis = static_cast<int>(draw.between(0, shape.size() - 1));
        shape[axis] += 1;  // of one element alone the gradient is nothing
        f.check(SoftmaxOp{axis}, {f.input("x", draw.normal(shape))});
    });
}

TEST(Gradient, Dropout) {
    for_shapes("dropout", [](Function& f, Draw& draw) {
        Shape shape = draw_activation(draw, 2);
        f.check(DropoutOp{draw.real(0, 0.5), static_cast<uint32_t>(draw.between(0, 1000)), draw.between(0, 5)},
                {f.input("x", draw.normal(shape))});
    });
}

TEST(Gradient, Add) {
    for_shapes("add", [](Function& f, Draw& draw) {
        const Shape shape = draw_activation(draw);
        std::vector<ValueId> terms;
        for (int64_t i = 0, count = draw.between(2, 4); i < count; ++i) terms.push_back(f.input(fmt::format("x{}", i), draw.normal(shape)));
        if (draw.coin()) terms.push_back(terms[0]);
        f.check(AddOp{}, terms);
    });
}

TEST(Gradient, Mul) {
    for_shapes("mul", [](Function& f, Draw& draw) {
        const Shape shape = draw_activation(draw);
        const ValueId a = f.input("a", draw.normal(shape));
        f.check(MulOp{}, {a, draw.coin() ? a : f.input("b", draw.normal(shape))});
    });
}

TEST(Gradient, Scale) {
    for_shapes("scale",
               [](Function& f, Draw& draw) { f.check(ScaleOp{draw.real(-3, 3)}, {f.input("x", draw.normal(draw_activation(draw)))}); });
}

// A shape and the same with some dims of size one.
std::pair<Shape, Shape> draw_broadcast(Draw& draw) {
    const Shape large = draw_activation(draw);
    Shape small = large;
    for (auto& d : small)
        if (draw.coin()) d = 1;
    return {large, small};
}

TEST(Gradient, Expand) {
    for_shapes("expand", [](Function& f, Draw& draw) {
        const auto shapes = draw_broadcast(draw);
        f.check(ExpandOp{shapes.first}, {f.input("x", draw.normal(shapes.second))});
    });
}

TEST(Gradient, SumTo) {
    for_shapes("sum to", [](Function& f, Draw& draw) {
        const auto shapes = draw_broadcast(draw);
        f.check(SumToOp{shapes.second}, {f.input("x", draw.normal(shapes.first))});
    });
}

TEST(Gradient, Concat) {
    for_shapes("concat", [](Function& f, Draw& draw) {
        Shape shape = draw_activation(draw);
        const int axis = static_cast<int>(draw.between(0, shape.size() - 1));
        std::vector<ValueId> parts;
        for (int64_t i = 0, count = draw.between(2, 4); i < count; ++i) {
            shape[axis] = draw.between(1, 4);
            parts.push_back(f.input(fmt::format("x{}", i), draw.normal(shape)));
        }
        f.check(ConcatOp{axis}, parts);
    });
}

TEST(Gradient, Slice) {
    for_shapes("slice", [](Function& f, Draw& draw) {
        const Shape shape = draw_activation(draw);
        SliceOp op;
        for (const int64_t d : shape) {
            op.start.push_back(draw.between(0, d - 1));
            op.size.push_back(draw.between(1, d - op.start.back()));
        }
        f.check(op, {f.input("x", draw.normal(shape))});
    });
}

TEST(Gradient, Pad) {
    for_shapes("pad", [](Function& f, Draw& draw) {
        const Shape shape = draw_activation(draw, 2);
        const int rank = shape.size();
        Dims lo = draw.dims(rank, 0, 2), hi = draw.dims(rank, 0, 2);
        if (draw.coin()) (draw.coin() ? lo : hi)[rank - 1] = -1;
        f.check(PadOp{lo, hi, draw.real(-1, 1)}, {f.input("x", draw.normal(shape))});
    });
}

TEST(Gradient, Reshape) {
    for_shapes("reshape", [](Function& f, Draw& draw) {
        const Shape shape = draw_activation(draw);
        f.check(ReshapeOp{{shape[0], product(shape, 1, shape.size())}}, {f.input("x", draw.normal(shape))});
    });
}

TEST(Gradient, Transpose) {
    for_shapes("transpose", [](Function& f, Draw& draw) {
        const Shape shape = draw_activation(draw);
        TransposeOp op;
        for (int i = 0; i < shape.size(); ++i) op.order.push_back(i);
        for (int i = shape.size() - 1; i > 0; --i) std::swap(op.order[i], op.order[static_cast<int>(draw.between(0, i))]);
        f.check(op, {f.input("x", draw.normal(shape))});
    });
}

struct Labelled {
    Shape logits, target;
};
Labelled draw_labelled(Draw& draw) {
    const int spatial = static_cast<int>(draw.between(0, 3));
    const Shape logits = join({draw.between(1, 4), draw.between(2, 6)}, draw.dims(spatial, 1, 3));
    return {logits, join({logits[0]}, logits.slice(2))};
}

void check_cross_entropy(const std::string& family, bool smoothed, bool weighted) {
    for_shapes(family, [&](Function& f, Draw& draw) {
        const auto s = draw_labelled(draw);
        const double smoothing = smoothed ? draw.real(0.05, 0.5) : 0, scale = draw.real(0.1, 2);
        const ValueId target = f.constant("target", draw.labels(s.target, s.logits[1]), Element::Index);
        std::vector<ValueId> inputs{f.input("logits", draw.normal(s.logits)), target};
        if (weighted) {
            Tensor weights = draw.normal({s.logits[1]});
            for (auto& w : weights.as<double>()) w = 0.1 + std::abs(w);
            const ValueId w = f.constant("weights", weights, Element::Precise);
            inputs.insert(inputs.end(), {w, f.graph.add1(TargetWeightOp{}, {target, w}, "loss")});
        }
        f.check_loss(CrossEntropyOp{smoothing, scale}, CrossEntropyGradOp{smoothing, scale}, inputs);
    });
}
TEST(Gradient, CrossEntropy) { check_cross_entropy("cross entropy", false, false); }
TEST(Gradient, CrossEntropySmoothed) { check_cross_entropy("cross entropy smoothed", true, false); }
TEST(Gradient, CrossEntropyWeighted) { check_cross_entropy("cross entropy weighted", false, true); }
TEST(Gradient, CrossEntropyWeightedSmoothed) { check_cross_entropy("cross entropy weighted smoothed", true, true); }

TEST(Gradient, Nll) {
    for_shapes("nll", [](Function& f, Draw& draw) {
        const auto s = draw_labelled(draw);
        const ValueId x = f.input("x", draw.normal(s.logits));
        const ValueId target = f.constant("target", draw.labels(s.target, s.logits[1]), Element::Index);
        f.check(NllOp{-1}, {x, target, f.constant("weights", draw.normal({s.logits[1]}), Element::Precise)});
    });
}

void check_error_loss(const std::string& family, ErrorKind kind) {
    for_shapes(family, [&](Function& f, Draw& draw) {
        const Shape shape = draw_activation(draw);
        Tensor target(shape, DType::f64);  // multiples of the gap, so half a gap from any x
        for (auto& t : target.as<double>()) t = kGap * static_cast<double>(draw.between(-20, 20));
        const double scale = draw.real(0.1, 2);
        f.check_loss(ErrorLossOp{kind, scale}, ErrorLossGradOp{kind, scale},
                     {f.input("x", draw.separated(shape, kGap)), f.constant("target", target)});
    });
}
TEST(Gradient, SquaredError) { check_error_loss("squared error", ErrorKind::Squared); }
TEST(Gradient, AbsoluteError) { check_error_loss("absolute error", ErrorKind::Absolute); }

// A value that is used twice, and one that nothing depends on.
TEST(Gradient, SharedAndDead) {
    for_shapes("shared", [](Function& f, Draw& draw) {
        const ValueId x = f.input("x", draw.normal({2, 3, 5})), w = f.parameter("w", draw.normal({3, 3, 3}));
        Window window = Window::of({3});
        window.pad_lo = window.pad_hi = {1};
        const ValueId once = f.graph.add1(ConvOp{window, 1}, {x, w}, "first");
        const ValueId twice = f.graph.add1(ConvOp{window, 1}, {f.graph.add1(UnaryOp{Unary::Tanh}, {once}, "act"), w}, "second");
        f.check(AddOp{}, {twice, x});
    });
    Graph graph;
    const ValueId x = graph.add_input("x", {{2, 2}}), unused = graph.add_input("unused", {{2, 2}});
    const ValueId y = graph.add1(ScaleOp{2}, {x}, "y"), c = graph.add_input("c", {{2, 2}});
    EXPECT_EQ(backward(graph, {{y, c}}, {x, unused})[1], kNone);
}

}  // namespace
}  // namespace convoy::ref
