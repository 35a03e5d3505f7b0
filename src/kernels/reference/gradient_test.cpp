// Gradients against finite differences. Every op that has a gradient is put into a graph, y = op(inputs), whose backward pass the library writes;
// with fixed random c, the derivative of L = sum(c * y) along random directions must be that of a five-point difference in float64. The same
// graphs in float32 must agree with float64 within 1e-4.
#include <cmath>

#include "kernels/reference/test_support.h"
#include "model/autodiff.h"

namespace convoy::ref {
namespace {

using namespace testing;
using Feeds = std::map<std::string, Tensor>;

constexpr double kStep = 1e-3;
// Between values near a kink (0 for the ReLU, another element for a maximum): wider than any step can reach.
constexpr double kGap = 0.05;
constexpr StepContext kContext{.seed = 7, .step = 3};

int shapes() { return test_count(15, 200); }

class Function {
  public:
    explicit Function(Draw& draw) : draw_(draw) {}

    Graph graph;

    // An input with its value; it is differentiated by unless it is of integers.
    ValueId input(const std::string& name, const Tensor& value, Element element = Element::Real) {
        const ValueId id = constant(name, value, element);
        wrt_.push_back(id);
        return id;
    }
    ValueId constant(const std::string& name, const Tensor& value, Element element = Element::Real) {
        feeds_[name] = value;
        return graph.add_input(name, {value.shape(), element});
    }
    ValueId parameter(const std::string& name, const Tensor& value) { return input(name, value, Element::Precise); }

    // Adds the op, its backward pass, and checks.
    void check(const Op& op, const std::vector<ValueId>& inputs) { check(graph.add(op, inputs, "op")[0]); }
    void check(ValueId y) {
        const ValueId c = graph.add_input("c", graph.value(y).type);
        feeds_["c"] = draw_.normal(graph.shape(y));
        check(y, backward(graph, {{y, c}}, wrt_));
    }
    // For a loss, which has a gradient op of its own.
    void check_loss(const Op& loss, const Op& gradient, const std::vector<ValueId>& inputs) {
        feeds_["c"] = doubles({1}, {1});
        check(graph.add1(loss, inputs, "loss"), {graph.add1(gradient, inputs, "loss")});
    }

  private:
    void check(ValueId y, const std::vector<ValueId>& gradients) {
        graph.add_output("y", y);
        for (size_t i = 0; i < wrt_.size(); ++i) {
            ASSERT_NE(gradients[i], kNone) << "no gradient for " << graph.value(wrt_[i]).name;
            ASSERT_EQ(graph.shape(gradients[i]), graph.shape(wrt_[i]));
            graph.add_output("d:" + graph.value(wrt_[i]).name, gradients[i]);
        }
        const auto results = interpret(graph, feeds_, DType::f64, kContext);
        for (const ValueId v : wrt_)
            for (int i = 0; i < 2; ++i) check_direction(results, {v});
        check_direction(results, wrt_);
        check_float32(results);
    }

    double loss_at(const Feeds& directions, double step) const {
        Feeds feeds = feeds_;
        for (const auto& [name, direction] : directions)
            for (int64_t i = 0; i < direction.numel(); ++i)
                feeds[name].as<double>()[static_cast<size_t>(i)] += step * element(direction, i);
        const Tensor y = interpret(graph, feeds, DType::f64, kContext).at("y");
        double sum = 0;
        for (int64_t i = 0; i < y.numel(); ++i) sum += element(y, i) * element(feeds_.at("c"), i);
        return sum;
    }

    void check_direction(const Feeds& results, const std::vector<ValueId>& along) {
        Feeds directions;
        double expected = 0, squares = 0;
        for (const ValueId v : along) {
            const auto& name = graph.value(v).name;
            const Tensor& direction = directions[name] = draw_.normal(graph.shape(v));
            const Tensor& gradient = results.at("d:" + name);
            for (int64_t i = 0; i < direction.numel(); ++i) {
                const double term = element(gradient, i) * element(direction, i);
                expected += term;
                squares += term * term;
            }
        }
        const double near = loss_at(directions, kStep) - loss_at(directions, -kStep);
        const double far = loss_at(directions, 2 * kStep) - loss_at(directions, -2 * kStep);
        const double found = (8 * near - far) / (12 * kStep);
        double magnitude = 0;
        for (int64_t i = 0; i < results.at("y").numel(); ++i)
            magnitude += std::abs(element(results.at("y"), i) * element(feeds_.at("c"), i));
        const double rounding = 1e-15 * magnitude / kStep;
        EXPECT_NEAR(found, expected, 1e-6 * std::max(std::abs(expected), std::sqrt(squares)) + rounding) << describe(along);
    }

    void check_float32(const Feeds& results) const {
        double whole = 0;
        for (const auto& [name, tensor] : results)
            if (name != "y") whole = std::hypot(whole, relative_error(tensor, Tensor(tensor.shape(), DType::f64), 1));
        const auto narrow = interpret(graph, feeds_, DType::f32, kContext);
        for (const auto& [name, tensor] : results)
            EXPECT_LT(relative_error(narrow.at(name), tensor, name == "y" ? 1e-30 : std::max(1e-3 * whole, 1e-30)), 1e-4)
                << name << " of " << describe(wrt_);
    }

    std::string describe(const std::vector<ValueId>& values) const {
        std::string text = text_of(graph.node(graph.value(graph.output("y")).producer).op) + ", by";
        for (const ValueId v : values) text += " " + graph.value(v).name + " " + to_string(graph.shape(v));
        return text;
    }

    Draw& draw_;
    std::vector<ValueId> wrt_;
    Feeds feeds_;
};

// Runs a family's body on as many random shapes as the run asks for.
template <class Body>
void for_shapes(const std::string& family, const Body& body) {
    for (int i = 0; i < shapes(); ++i) {
        Draw draw(family, i);
        Function f(draw);
        body(f, draw);
        if (::testing::Test::HasFailure()) FAIL() << family << ", shape number " << i;
    }
}

constexpr WindowLimits kSmall{.length = 6, .kernel = 3, .stride = 3, .dilation = 2, .pad_least = -1, .pad_most = 2};
constexpr WindowLimits kPool{.length = 7, .kernel = 3, .stride = 3, .dilation = 1, .pad_least = 0, .pad_most = 1};

// An activation [N, C, ...] with up to three spatial dims.
Shape draw_activation(Draw& draw, int64_t least = 1) { return draw.dims(static_cast<int>(draw.between(2, 5)), least, 4); }

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

TEST(Gradient, MaxPool) {
    for_shapes("max pool", [](Function& f, Draw& draw) {
        const WindowProblem p = draw_window(draw, {.length = 7, .kernel = 3, .stride = 3, .dilation = 2, .pad_least = 0, .pad_most = 0});
        Window window = p.window;
        // Padding that leaves an element in every window.
        for (int i = 0; i < window.rank(); ++i) {
            const bool room = window.dilation[i] == 1 && window.kernel[i] > 1;
            window.pad_lo[i] = room ? draw.between(0, 1) : 0;
            window.pad_hi[i] = room ? draw.between(0, 1) : 0;
        }
        f.check(MaxPoolOp{window}, {f.input("x", draw.separated(join(draw.dims(2, 1, 3), p.in), kGap))});
    });
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
