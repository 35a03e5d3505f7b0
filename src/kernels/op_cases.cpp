#include "kernels/op_cases.h"

#include <algorithm>

namespace convoy::op_testing {

namespace {

using ref::testing::draw_window;
using ref::testing::WindowProblem;

constexpr Element kReal = Element::Real, kPrecise = Element::Precise;

// [N, C, ..] with enough elements in every channel that statistics are well behaved.
Shape activation(Draw& d, int64_t most_channels = 40) {
    const int rank = static_cast<int>(d.between(1, 3));
    const int64_t channels = d.coin() ? d.between(1, most_channels) : 8 * d.between(1, std::max<int64_t>(1, most_channels / 8));
    return join({d.between(3, 6), channels}, d.dims(rank, 3, rank == 3 ? 5 : 9));
}
// The same, or [N, C].
Shape any_activation(Draw& d) { return d.between(0, 3) == 0 ? Shape{d.between(9, 33), d.between(1, 50)} : activation(d); }

Tensor positive(Draw& d, const Shape& shape) {
    Tensor t = d.normal(shape);
    for (auto& v : t.as<double>()) v = 0.2 + v * v;
    return t;
}

// x with another mean and spread in every channel.
Tensor spread(Draw& d, const Shape& shape) {
    Tensor x = d.normal(shape);
    const Tensor mean = d.normal({shape[1]}), width = positive(d, {shape[1]});
    const int64_t inner = product(shape, 2, shape.size());
    for (int64_t i = 0; i < x.numel(); ++i) {
        double& v = x.as<double>()[static_cast<size_t>(i)];
        v = v * element(width, i / inner % shape[1]) + 3 * element(mean, i / inner % shape[1]);
    }
    return x;
}

Tensor by_reference(const Op& op, const std::vector<Tensor>& inputs, const Shape& output) {
    return ref::testing::run_op1(op, inputs, output);
}

OpCase one(const Op& op, const std::vector<std::pair<Element, Tensor>>& inputs) {
    OpCase c;
    std::vector<int> from;
    for (const auto& [element, tensor] : inputs) from.push_back(c.input(element, tensor));
    const int first = c.step(op, from);
    for (int v = first; v < static_cast<int>(c.values.size()); ++v) c.outputs.push_back(v);
    return c;
}

// --- Convolutions and fully connected layers --------------------------------------------------------------------------------------

struct ConvShapes {
    WindowProblem problem;
    int64_t groups;
    Shape x, w, y;
};
ConvShapes draw_conv(Draw& d, bool crops = true) {
    ConvShapes c;
    c.problem =
        draw_window(d, {.length = 12, .kernel = 4, .stride = 3, .dilation = 2, .pad_least = crops && d.between(0, 4) == 0 ? -1 : 0});
    c.groups = d.between(0, 3) == 0 ? d.between(2, 3) : 1;
    // Often such as real nets have, sometimes odd.
    const auto channels = [&] { return d.coin() ? 8 * d.between(1, 4) : d.between(1, 9); };
    const int64_t in = channels(), out = channels(), n = d.between(1, 4);
    c.x = join({n, in * c.groups}, c.problem.in);
    c.w = join({out * c.groups, in}, c.problem.window.kernel);
    c.y = join({n, out * c.groups}, c.problem.out);
    return c;
}

OpCase conv(Draw& d) {
    const auto c = draw_conv(d);
    return one(ConvOp{c.problem.window, c.groups}, {{kReal, d.normal(c.x)}, {kPrecise, d.normal(c.w)}});
}
OpCase conv_grad_input(Draw& d) {
    const auto c = draw_conv(d);
    return one(ConvGradInputOp{c.problem.window, c.groups, c.problem.in}, {{kReal, d.normal(c.y)}, {kPrecise, d.normal(c.w)}});
}
OpCase conv_grad_weight(Draw& d) {
    const auto c = draw_conv(d);
    return one(ConvGradWeightOp{c.problem.window, c.groups}, {{kReal, d.normal(c.x)}, {kReal, d.normal(c.y)}});
}
// As nets have them: 3x3, stride 1 or 2, channels in eights.
OpCase conv_usual(Draw& d) {
    const int rank = static_cast<int>(d.between(2, 3));
    const int64_t k = d.coin() ? 3 : 1, s = d.between(1, 2);
    const Window w{Dims::filled(rank, k), Dims::filled(rank, s), Dims::filled(rank, 1), Dims::filled(rank, k / 2),
                   Dims::filled(rank, k / 2)};
    const int64_t in = 16 * d.between(1, 4), out = 16 * d.between(1, 4), n = d.between(1, 8);
    const Dims space = Dims::filled(rank, rank == 3 ? 8 : d.between(7, 20));
    const Shape x = join({n, in}, space), weight = join({out, in}, w.kernel), y = join({n, out}, w.output(space));
    switch (d.between(0, 2)) {
        case 0: return one(ConvOp{w, 1}, {{kReal, d.normal(x)}, {kPrecise, d.normal(weight)}});
        case 1: return one(ConvGradInputOp{w, 1, space}, {{kReal, d.normal(y)}, {kPrecise, d.normal(weight)}});
        default: return one(ConvGradWeightOp{w, 1}, {{kReal, d.normal(x)}, {kReal, d.normal(y)}});
    }
}

struct LinearShapes {
    int64_t n, in, out;
};
LinearShapes draw_linear(Draw& d) {
    const auto size = [&] { return d.coin() ? 8 * d.between(1, 30) : d.between(1, 90); };
    return {size(), size(), size()};
}
OpCase linear(Draw& d) {
    const auto [n, in, out] = draw_linear(d);
    return one(LinearOp{}, {{kReal, d.normal({n, in})}, {kPrecise, d.normal({out, in})}});
}
OpCase linear_grad_input(Draw& d) {
    const auto [n, in, out] = draw_linear(d);
    return one(LinearGradInputOp{}, {{kReal, d.normal({n, out})}, {kPrecise, d.normal({out, in})}});
}
OpCase linear_grad_weight(Draw& d) {
    const auto [n, in, out] = draw_linear(d);
    return one(LinearGradWeightOp{}, {{kReal, d.normal({n, in})}, {kReal, d.normal({n, out})}});
}

struct LocalShapes {
    WindowProblem problem;
    Shape x, w, y;
};
LocalShapes draw_local(Draw& d) {
    LocalShapes c;
    c.problem = draw_window(d, {.length = 6, .kernel = 3, .stride = 2, .dilation = 2});
    const int64_t n = d.between(1, 3), in = d.between(1, 4), out = d.between(1, 4);
    c.x = join({n, in}, c.problem.in);
    c.w = join(join(join({out}, c.problem.out), {in}), c.problem.window.kernel);
    c.y = join({n, out}, c.problem.out);
    return c;
}
OpCase local_conv(Draw& d) {
    const auto c = draw_local(d);
    return one(LocalConvOp{c.problem.window}, {{kReal, d.normal(c.x)}, {kPrecise, d.normal(c.w)}});
}
OpCase local_conv_grad_input(Draw& d) {
    const auto c = draw_local(d);
    return one(LocalConvGradInputOp{c.problem.window, c.problem.in}, {{kReal, d.normal(c.y)}, {kPrecise, d.normal(c.w)}});
}
OpCase local_conv_grad_weight(Draw& d) {
    const auto c = draw_local(d);
    return one(LocalConvGradWeightOp{c.problem.window}, {{kReal, d.normal(c.x)}, {kReal, d.normal(c.y)}});
}

OpCase bias(Draw& d) {
    const Shape x = any_activation(d);
    if (d.between(0, 3) == 0) return one(BiasOp{1}, {{kReal, d.normal(x)}, {kPrecise, d.normal(x.slice(1))}});
    return one(BiasOp{1}, {{kReal, d.normal(x)}, {kPrecise, d.normal({x[1]})}});
}
OpCase bias_grad(Draw& d) {
    const Shape x = any_activation(d);
    if (d.between(0, 3) == 0) return one(BiasGradOp{1, x.size() - 1}, {{kReal, d.normal(x)}});
    return one(BiasGradOp{1, 1}, {{kReal, d.normal(x)}});
}

// --- Pooling and resampling -------------------------------------------------------------------------------------------------------

Shape with_space(Draw& d, const Dims& space) { return join({d.between(1, 4), d.coin() ? 8 * d.between(1, 4) : d.between(1, 9)}, space); }

// Every window of a maximum holds some of the input.
WindowProblem draw_max_window(Draw& d) {
    while (true) {
        WindowProblem p = draw_window(d, {.pad_least = 0, .pad_most = 1});
        bool inside = true;
        for (int i = 0; i < p.window.rank(); ++i) inside = inside && std::max(p.window.pad_lo[i], p.window.pad_hi[i]) < p.window.extent(i);
        if (inside) return p;
    }
}

OpCase max_pool(Draw& d) {
    const auto p = draw_max_window(d);
    return one(MaxPoolOp{p.window}, {{kReal, d.normal(with_space(d, p.in))}});
}
// Places as the reference finds them.
std::pair<Element, Tensor> where_of(const Window& window, const Tensor& x, const Shape& y) {
    const ValueType type = infer(MaxPoolOp{window}, {{x.shape(), kReal}})[1];
    const DType stored = type.element == Element::Byte ? DType::u8 : DType::i32;
    return {type.element,
            ref::testing::run_op(MaxPoolOp{window}, {x}, {TensorDesc::whole(y, DType::f64), TensorDesc::whole(y, stored)})[1]};
}
OpCase max_pool_grad(Draw& d) {
    const auto p = draw_max_window(d);
    const Shape x = with_space(d, p.in), y = join({x[0], x[1]}, p.out);
    return one(MaxPoolGradOp{p.window, p.in}, {{kReal, d.normal(y)}, where_of(p.window, d.normal(x), y)});
}
OpCase max_index(Draw& d) {
    const auto p = draw_max_window(d);
    const Shape x = with_space(d, p.in), y = join({x[0], x[1]}, p.out);
    return one(MaxIndexOp{p.window, p.in, d.coin()}, {where_of(p.window, d.normal(x), y)});
}
OpCase average_pool(Draw& d) {
    const auto p = draw_window(d, {.pad_least = 0, .pad_most = 2});
    return one(AveragePoolOp{p.window, d.coin(), Dims::filled(p.in.size(), 0)}, {{kReal, d.normal(with_space(d, p.in))}});
}
OpCase average_pool_grad(Draw& d) {
    const auto p = draw_window(d, {.pad_least = 0, .pad_most = 2});
    return one(AveragePoolGradOp{p.window, d.coin(), Dims::filled(p.in.size(), 0), p.in}, {{kReal, d.normal(with_space(d, p.out))}});
}

struct Resizing {
    Dims in, out;
};
Resizing draw_resizing(Draw& d) {
    const int rank = static_cast<int>(d.between(1, 3));
    return {d.dims(rank, 1, 7), d.between(0, 3) == 0 ? Dims::filled(rank, 1) : d.dims(rank, 1, 9)};
}
OpCase adaptive_pool(Draw& d) {
    const auto r = draw_resizing(d);
    return one(AdaptivePoolOp{r.out}, {{kReal, d.normal(with_space(d, r.in))}});
}
OpCase adaptive_pool_grad(Draw& d) {
    const auto r = draw_resizing(d);
    return one(AdaptivePoolGradOp{r.in}, {{kReal, d.normal(with_space(d, r.out))}});
}
OpCase upsample(Draw& d) {
    const auto r = draw_resizing(d);
    const bool nearest = d.coin();
    return one(UpsampleOp{nearest ? Resample::Nearest : Resample::Linear, r.out, !nearest && d.coin()},
               {{kReal, d.normal(with_space(d, r.in))}});
}
OpCase upsample_grad(Draw& d) {
    const auto r = draw_resizing(d);
    const bool nearest = d.coin();
    return one(UpsampleGradOp{nearest ? Resample::Nearest : Resample::Linear, r.in, !nearest && d.coin()},
               {{kReal, d.normal(with_space(d, r.out))}});
}

// --- Normalisation ----------------------------------------------------------------------------------------------------------------

struct NormInputs {
    Tensor x, dy, stats, gamma, beta, dgamma, dbeta;
};
NormInputs draw_norm(Draw& d) {
    const Shape shape = any_activation(d);
    const int64_t c = shape[1];
    NormInputs n{.x = spread(d, shape), .dy = d.normal(shape), .gamma = positive(d, {c}), .beta = d.normal({c})};
    n.stats = by_reference(BatchStatsOp{}, {n.x}, {2, c});
    const auto sums = ref::testing::run_op(BatchNormGradSumsOp{}, {n.x, n.dy, n.stats},
                                           {TensorDesc::whole({c}, DType::f64), TensorDesc::whole({c}, DType::f64)});
    n.dgamma = sums[0];
    n.dbeta = sums[1];
    return n;
}
int64_t count_of(const Tensor& x) { return x.numel() / x.shape()[1]; }

OpCase batch_stats(Draw& d) { return one(BatchStatsOp{}, {{kReal, spread(d, any_activation(d))}}); }
OpCase running_stats(Draw& d) {
    const int64_t c = d.between(1, 300);
    return one(RunningStatsOp{}, {{kPrecise, d.normal({c})}, {kPrecise, positive(d, {c})}});
}
OpCase running_update(Draw& d) {
    const int64_t c = d.between(1, 300);
    return one(RunningUpdateOp{.momentum = 0.1, .count = d.between(1, 50)},
               {{kPrecise, d.normal({c})}, {kPrecise, positive(d, {c})}, {kPrecise, positive(d, {2, c})}});
}
OpCase batch_normalize(Draw& d) {
    const auto n = draw_norm(d);
    return one(BatchNormalizeOp{}, {{kReal, n.x}, {kPrecise, n.stats}, {kPrecise, n.gamma}, {kPrecise, n.beta}});
}
OpCase batch_norm_grad_sums(Draw& d) {
    const auto n = draw_norm(d);
    return one(BatchNormGradSumsOp{}, {{kReal, n.x}, {kReal, n.dy}, {kPrecise, n.stats}});
}
OpCase batch_norm_grad_input(Draw& d) {
    const auto n = draw_norm(d);
    return one(BatchNormGradInputOp{.count = count_of(n.x)},
               {{kReal, n.x}, {kReal, n.dy}, {kPrecise, n.stats}, {kPrecise, n.gamma}, {kPrecise, n.dgamma}, {kPrecise, n.dbeta}});
}
OpCase batch_norm_fixed_grad_input(Draw& d) {
    const auto n = draw_norm(d);
    return one(BatchNormFixedGradInputOp{}, {{kReal, n.dy}, {kPrecise, n.stats}, {kPrecise, n.gamma}});
}

struct CellInputs {
    Cells cells;
    Tensor x, dy, stats, gamma, beta, sums;
};
CellInputs draw_cells(Draw& d) {
    CellInputs c;
    Shape shape = activation(d, 24);
    if (d.coin()) {
        c.cells.groups = d.between(1, 3);
        shape[1] = c.cells.groups * d.between(1, 6);
    } else {
        c.cells.axis = static_cast<int>(d.between(1, shape.size() - 1));
        if (shape.back() < 8) shape[shape.size() - 1] = 8;
    }
    c.x = spread(d, shape);
    c.dy = d.normal(shape);
    const Shape stats = infer(CellStatsOp{c.cells}, {{shape, kReal}})[0].shape;
    c.stats = by_reference(CellStatsOp{c.cells}, {c.x}, stats);
    const Shape affine = c.cells.groups > 0 ? Shape{shape[1]} : shape.slice(c.cells.axis);
    c.gamma = positive(d, affine);
    c.beta = d.normal(affine);
    c.sums = by_reference(CellNormGradSumsOp{c.cells}, {c.x, c.dy, c.stats, c.gamma}, stats);
    return c;
}
OpCase cell_stats(Draw& d) {
    const auto c = draw_cells(d);
    return one(CellStatsOp{c.cells}, {{kReal, c.x}});
}
OpCase cell_normalize(Draw& d) {
    const auto c = draw_cells(d);
    return one(CellNormalizeOp{c.cells}, {{kReal, c.x}, {kPrecise, c.stats}, {kPrecise, c.gamma}, {kPrecise, c.beta}});
}
OpCase cell_norm_grad_affine(Draw& d) {
    const auto c = draw_cells(d);
    return one(CellNormGradAffineOp{c.cells}, {{kReal, c.x}, {kReal, c.dy}, {kPrecise, c.stats}});
}
OpCase cell_norm_grad_sums(Draw& d) {
    const auto c = draw_cells(d);
    return one(CellNormGradSumsOp{c.cells}, {{kReal, c.x}, {kReal, c.dy}, {kPrecise, c.stats}, {kPrecise, c.gamma}});
}
OpCase cell_norm_grad_input(Draw& d) {
    const auto c = draw_cells(d);
    return one(CellNormGradInputOp{c.cells}, {{kReal, c.x}, {kReal, c.dy}, {kPrecise, c.stats}, {kPrecise, c.gamma}, {kPrecise, c.sums}});
}
OpCase lrn(Draw& d) {
    return one(LrnOp{.size = d.between(1, 6), .alpha = 0.3, .beta = 0.75, .k = 1.5}, {{kReal, d.normal(activation(d))}});
}
OpCase lrn_grad(Draw& d) {
    const Shape x = activation(d);
    return one(LrnGradOp{.size = d.between(1, 6), .alpha = 0.3, .beta = 0.75, .k = 1.5}, {{kReal, d.normal(x)}, {kReal, d.normal(x)}});
}
OpCase merge_stats(Draw& d) {
    const int64_t parts = d.between(1, 5), cells = d.between(1, 300);
    MergeStatsOp op;
    for (int64_t p = 0; p < parts; ++p) op.counts.push_back(p > 0 && d.between(0, 3) == 0 ? 0 : d.between(1, 50));
    return one(op, {{kPrecise, positive(d, {parts, 2, cells})}});
}

// --- Elementwise ------------------------------------------------------------------------------------------------------------------

Unary draw_unary(Draw& d) { return static_cast<Unary>(d.between(0, 7)); }
OpCase unary(Draw& d) { return one(UnaryOp{draw_unary(d), 0.1}, {{kReal, d.normal(any_activation(d))}}); }
OpCase unary_grad(Draw& d) {
    const UnaryGradOp op{draw_unary(d), 0.1};
    const Shape shape = any_activation(d);
    Tensor saved = d.normal(shape);
    if (grad_reads_output(op.kind)) saved = by_reference(UnaryOp{op.kind, op.alpha}, {saved}, shape);
    return one(op, {{kReal, saved}, {kReal, d.normal(shape)}});
}
// Arguments at which all of them are defined.
PointwiseOp draw_pointwise(Draw& d) {
    PointwiseOp op{static_cast<Pointwise>(d.between(0, 30)), d.real(0.1, 0.4), d.real(0.5, 0.9)};
    if (op.kind == Pointwise::Acosh) op.kind = Pointwise::Cosh;
    return op;
}
Tensor between_0_and_1(Draw& d, const Shape& shape) {
    Tensor t = d.normal(shape);
    for (auto& v : t.as<double>()) v = 0.05 + 0.9 / (1 + v * v);
    return t;
}
OpCase pointwise(Draw& d) { return one(draw_pointwise(d), {{kReal, between_0_and_1(d, any_activation(d))}}); }
OpCase pointwise_grad(Draw& d) {
    const PointwiseOp op = draw_pointwise(d);
    const Shape shape = any_activation(d);
    return one(PointwiseGradOp{op.kind, op.a, op.b}, {{kReal, between_0_and_1(d, shape)}, {kReal, d.normal(shape)}});
}
int64_t draw_slopes(Draw& d, const Shape& x) { return d.coin() ? 1 : x[1]; }
OpCase prelu(Draw& d) {
    const Shape x = any_activation(d);
    return one(PReluOp{}, {{kReal, d.normal(x)}, {kPrecise, d.normal({draw_slopes(d, x)})}});
}
OpCase prelu_grad_input(Draw& d) {
    const Shape x = any_activation(d);
    return one(PReluGradInputOp{}, {{kReal, d.normal(x)}, {kPrecise, d.normal({draw_slopes(d, x)})}, {kReal, d.normal(x)}});
}
OpCase prelu_grad_slope(Draw& d) {
    const Shape x = any_activation(d);
    return one(PReluGradSlopeOp{draw_slopes(d, x)}, {{kReal, d.normal(x)}, {kReal, d.normal(x)}});
}
OpCase softmax(Draw& d) {
    const Shape x = d.coin() ? Shape{d.between(1, 9), d.between(1, 200)} : activation(d);
    return one(SoftmaxOp{static_cast<int>(d.between(0, x.size() - 1))}, {{kReal, d.normal(x)}});
}
OpCase softmax_grad(Draw& d) {
    const Shape x = d.coin() ? Shape{d.between(1, 9), d.between(1, 200)} : activation(d);
    const int axis = static_cast<int>(d.between(0, x.size() - 1));
    return one(SoftmaxGradOp{axis}, {{kReal, by_reference(SoftmaxOp{axis}, {d.normal(x)}, x)}, {kReal, d.normal(x)}});
}
OpCase log_softmax(Draw& d) {
    const Shape x = d.coin() ? Shape{d.between(1, 9), d.between(1, 200)} : activation(d);
    return one(LogSoftmaxOp{static_cast<int>(d.between(0, x.size() - 1))}, {{kReal, d.normal(x)}});
}
OpCase log_softmax_grad(Draw& d) {
    const Shape x = d.coin() ? Shape{d.between(1, 9), d.between(1, 200)} : activation(d);
    const int axis = static_cast<int>(d.between(0, x.size() - 1));
    return one(LogSoftmaxGradOp{axis}, {{kReal, by_reference(LogSoftmaxOp{axis}, {d.normal(x)}, x)}, {kReal, d.normal(x)}});
}
OpCase dropout(Draw& d) {
    return one(DropoutOp{.p = d.real(0.1, 0.9), .stream = static_cast<uint32_t>(d.between(0, 1000)), .first_sample = d.between(0, 5)},
               {{kReal, d.normal(any_activation(d))}});
}
OpCase add(Draw& d) {
    const Shape x = any_activation(d);
    std::vector<std::pair<Element, Tensor>> terms;
    const Element element = d.coin() ? kReal : kPrecise;
    for (int64_t i = d.between(2, 19); i > 0; --i) terms.emplace_back(element, d.normal(x));
    return one(AddOp{}, terms);
}
OpCase mul(Draw& d) {
    const Shape x = any_activation(d);
    return one(MulOp{}, {{kReal, d.normal(x)}, {kReal, d.normal(x)}});
}
OpCase scale(Draw& d) { return one(ScaleOp{d.real(-2, 2)}, {{kReal, d.normal(any_activation(d))}}); }

struct Expanding {
    Shape small, large;
};
Expanding draw_expanding(Draw& d) {
    const Shape large = activation(d);
    Shape small = large;
    for (int i = 0; i < small.size(); ++i)
        if (d.coin()) small[i] = 1;
    return {small, large};
}
OpCase expand(Draw& d) {
    const auto e = draw_expanding(d);
    return one(ExpandOp{e.large}, {{kReal, d.normal(e.small)}});
}
OpCase sum_to(Draw& d) {
    const auto e = draw_expanding(d);
    return one(SumToOp{e.small}, {{kReal, d.normal(e.large)}});
}

// --- Rearranging ------------------------------------------------------------------------------------------------------------------

OpCase concat(Draw& d) {
    Shape shape = activation(d);
    const int axis = static_cast<int>(d.between(0, shape.size() - 1));
    std::vector<std::pair<Element, Tensor>> parts;
    for (int64_t i = d.between(2, 4); i > 0; --i) {
        shape[axis] = d.between(1, 16);
        parts.emplace_back(kReal, d.normal(shape));
    }
    return one(ConcatOp{axis}, parts);
}
OpCase slice(Draw& d) {
    const Shape x = activation(d);
    SliceOp op{x, x};
    for (int i = 0; i < x.size(); ++i) {
        op.start[i] = d.coin() ? 0 : d.between(0, x[i] - 1);
        op.size[i] = d.between(1, x[i] - op.start[i]);
    }
    return one(op, {{kReal, d.normal(x)}});
}
OpCase pad(Draw& d) {
    const Shape x = activation(d);
    PadOp op{x, x, d.real(-1, 1)};
    for (int i = 0; i < x.size(); ++i) {
        op.lo[i] = d.between(-1, 2);
        op.hi[i] = d.between(x[i] + op.lo[i] > 1 ? -1 : 0, 2);
        if (x[i] + op.lo[i] + op.hi[i] <= 0) op.hi[i] = 2;
    }
    return one(op, {{kReal, d.normal(x)}});
}
OpCase reshape(Draw& d) {
    const Shape x = activation(d);
    return one(ReshapeOp{{x[0], numel(x) / x[0]}}, {{kReal, d.normal(x)}});
}
OpCase transpose(Draw& d) {
    const Shape x = d.coin() ? Shape{d.between(1, 90), d.between(1, 90)} : activation(d);
    Dims order;
    for (int i = 0; i < x.size(); ++i) order.push_back(i);
    for (int i = x.size() - 1; i > 0; --i) std::swap(order[i], order[static_cast<int>(d.between(0, i))]);
    return one(TransposeOp{order}, {{kReal, d.normal(x)}});
}

Box draw_box(Draw& d, const Shape& whole) {
    Box box{whole, whole};
    for (int i = 0; i < whole.size(); ++i) {
        box.origin[i] = d.between(0, whole[i] - 1);
        box.shape[i] = d.between(1, whole[i] - box.origin[i]);
    }
    return box;
}
OpCase pack(Draw& d) {
    const Shape x = activation(d);
    PackOp op;
    for (int64_t i = d.between(1, 4); i > 0; --i) op.boxes.push_back(draw_box(d, x));
    OpCase c;
    const int in = c.input(kReal, d.normal(x));
    int64_t elements = 0;
    for (const Box& box : op.boxes) elements += numel(box.shape);
    c.values.push_back({{elements}, kReal});
    c.steps.push_back({op, {in}, {1}});
    c.outputs = {1};
    return c;
}
// A tensor cut in two along a dim: one part from the wire, the other from x.
OpCase unpack(Draw& d) {
    Shape y = activation(d);
    const int axis = static_cast<int>(d.between(0, y.size() - 1));
    y[axis] = std::max<int64_t>(y[axis], 2);
    const int64_t cut = d.between(1, y[axis] - 1);
    const Box whole = Box::whole(y), first = whole.with(axis, 0, cut), second = whole.with(axis, cut, y[axis]);
    UnpackOp op;
    op.boxes = {first};
    op.kept = Box::whole(second.shape);
    op.kept_at = second.origin;
    OpCase c;
    const int wire = c.input(kReal, d.normal({numel(first.shape)})), x = c.input(kReal, d.normal(second.shape));
    c.values.push_back({y, kReal});
    c.steps.push_back({op, {wire, x}, {2}});
    c.outputs = {2};
    return c;
}

// --- Losses -----------------------------------------------------------------------------------------------------------------------

struct Classes {
    Tensor logits, target, weights, normaliser;
    bool weighted;
    double smoothing;
    std::vector<std::pair<Element, Tensor>> inputs() const {
        std::vector<std::pair<Element, Tensor>> list{{kReal, logits}, {Element::Index, target}};
        if (weighted) list.insert(list.end(), {{kPrecise, weights}, {kPrecise, normaliser}});
        return list;
    }
};
Classes draw_classes(Draw& d) {
    const Shape x = d.coin() ? Shape{d.between(1, 40), d.between(2, 150)} : activation(d, 12);
    return {d.normal(x), d.labels(join({x[0]}, x.slice(2)), x[1]), positive(d, {x[1]}), positive(d, {1}), d.coin(), d.coin() ? 0.1 : 0};
}
OpCase cross_entropy(Draw& d) {
    const auto c = draw_classes(d);
    return one(CrossEntropyOp{c.smoothing, 0.37}, c.inputs());
}
OpCase cross_entropy_grad(Draw& d) {
    const auto c = draw_classes(d);
    return one(CrossEntropyGradOp{c.smoothing, 0.37}, c.inputs());
}
OpCase correct(Draw& d) {
    const auto c = draw_classes(d);
    return one(CorrectOp{}, {{kReal, c.logits}, {Element::Index, c.target}});
}
OpCase nll(Draw& d) {
    const auto c = draw_classes(d);
    return one(NllOp{d.between(-1, 1)}, {{kReal, c.logits}, {Element::Index, c.target}, {kPrecise, c.weights}});
}
OpCase nll_grad(Draw& d) {
    const auto c = draw_classes(d);
    return one(NllGradOp{d.between(-1, 1)}, {{kReal, d.normal(c.target.shape())}, {Element::Index, c.target}, {kPrecise, c.weights}});
}
OpCase target_weight(Draw& d) {
    const auto c = draw_classes(d);
    return one(TargetWeightOp{}, {{Element::Index, c.target}, {kPrecise, c.weights}});
}
OpCase error_loss(Draw& d) {
    const Shape x = any_activation(d);
    return one(ErrorLossOp{d.coin() ? ErrorKind::Squared : ErrorKind::Absolute, 0.37}, {{kReal, d.normal(x)}, {kReal, d.normal(x)}});
}
OpCase error_loss_grad(Draw& d) {
    const Shape x = any_activation(d);
    return one(ErrorLossGradOp{d.coin() ? ErrorKind::Squared : ErrorKind::Absolute, 0.37}, {{kReal, d.normal(x)}, {kReal, d.normal(x)}});
}

// --- Update -----------------------------------------------------------------------------------------------------------------------

OpCase squared_norm(Draw& d) { return one(SquaredNormOp{}, {{d.coin() ? kReal : kPrecise, d.normal(any_activation(d))}}); }
OpCase clip_scale(Draw& d) { return one(ClipScaleOp{d.real(0.1, 3)}, {{kPrecise, positive(d, {1})}}); }

Tensor draw_hyper(Draw& d) { return Tensor::of<double>({2}, {d.real(0.001, 0.1), static_cast<double>(d.between(1, 20))}); }
UpdateRule draw_rule(Draw& d) { return {.rule = static_cast<Rule>(d.between(0, 7)), .weight_decay = d.coin() ? 0.01 : 0}; }

// Adds an update of a tensor of this shape.
int add_update(OpCase& c, Draw& d, const UpdateOp& op, const Shape& shape, int hyper) {
    std::vector<int> in{c.input(kPrecise, d.normal(shape)), c.input(kPrecise, d.normal(shape)), hyper};
    for (int i = 0; i < slots_of(op.rule.rule); ++i) in.push_back(c.input(kPrecise, positive(d, shape)));
    if (op.rule.rule == Rule::Lars)
        for (int i = 0; i < 2; ++i) in.push_back(c.input(kPrecise, positive(d, {1})));
    if (op.clipped) in.push_back(c.input(kPrecise, positive(d, {1})));
    c.steps.push_back({op, in, {}});
    return static_cast<int>(c.steps.size()) - 1;
}
// Outputs come after all inputs.
void add_update_outputs(OpCase& c) {
    for (auto& step : c.steps) {
        const Shape shape = c.values[static_cast<size_t>(step.inputs[0])].shape;
        for (int i = 0; i <= slots_of(std::get<UpdateOp>(step.op).rule.rule); ++i) {
            step.outputs.push_back(static_cast<int>(c.values.size()));
            c.outputs.push_back(step.outputs.back());
            c.values.push_back({shape, kPrecise});
        }
    }
}
OpCase update(Draw& d) {
    OpCase c;
    const UpdateOp op{draw_rule(d), d.coin()};
    const int hyper = c.input(kPrecise, draw_hyper(d));
    add_update(c, d, op, any_activation(d), hyper);
    add_update_outputs(c);
    return c;
}
OpCase lamb_direction(Draw& d) {
    const Shape shape = any_activation(d);
    const bool clipped = d.coin();
    std::vector<std::pair<Element, Tensor>> in{{kPrecise, d.normal(shape)},
                                               {kPrecise, d.normal(shape)},
                                               {kPrecise, draw_hyper(d)},
                                               {kPrecise, d.normal(shape)},
                                               {kPrecise, positive(d, shape)}};
    if (clipped) in.emplace_back(kPrecise, positive(d, {1}));
    return one(LambDirectionOp{{.rule = Rule::Lamb, .weight_decay = 0.01}, clipped}, in);
}
OpCase lamb_apply(Draw& d) {
    const Shape shape = any_activation(d);
    return one(LambApplyOp{}, {{kPrecise, d.normal(shape)},
                               {kPrecise, d.normal(shape)},
                               {kPrecise, draw_hyper(d)},
                               {kPrecise, positive(d, {1})},
                               {kPrecise, positive(d, {1})}});
}

// --- Patterns ---------------------------------------------------------------------------------------------------------------------

UnaryOp draw_rectifier(Draw& d) { return d.coin() ? UnaryOp{Unary::Relu, 0} : UnaryOp{Unary::LeakyRelu, 0.1}; }

OpCase conv_bias_activation(Draw& d) {
    const auto s = draw_conv(d, false);
    OpCase c;
    const int x = c.input(kReal, d.normal(s.x)), w = c.input(kPrecise, d.normal(s.w)), b = c.input(kPrecise, d.normal({s.y[1]}));
    int y = c.step(BiasOp{1}, {c.step(ConvOp{s.problem.window, s.groups}, {x, w}), b});
    if (d.coin()) y = c.step(draw_rectifier(d), {y});
    c.outputs = {y};
    return c;
}
OpCase bias_activation(Draw& d) {
    OpCase c;
    const Shape shape = any_activation(d);
    const int x = c.input(kReal, d.normal(shape)), b = c.input(kPrecise, d.normal({shape[1]}));
    c.outputs = {c.step(draw_rectifier(d), {c.step(BiasOp{1}, {x, b})})};
    return c;
}
OpCase normalize_add_relu(Draw& d) {
    const auto n = draw_norm(d);
    OpCase c;
    const int x = c.input(kReal, n.x), stats = c.input(kPrecise, n.stats), gamma = c.input(kPrecise, n.gamma),
              beta = c.input(kPrecise, n.beta);
    const bool adds = d.coin();
    const int other = adds ? c.input(kReal, d.normal(n.x.shape())) : 0;
    int y = c.step(BatchNormalizeOp{}, {x, stats, gamma, beta});
    if (adds) y = c.step(AddOp{}, d.coin() ? std::vector<int>{y, other} : std::vector<int>{other, y});
    if (!adds || d.coin()) y = c.step(UnaryOp{}, {y});
    c.outputs = {y};
    return c;
}
OpCase masked_sums(Draw& d) {
    const auto n = draw_norm(d);
    OpCase c;
    const int y = c.input(kReal, d.normal(n.x.shape())), dy = c.input(kReal, n.dy), x = c.input(kReal, n.x),
              stats = c.input(kPrecise, n.stats);
    const int masked = c.step(UnaryGradOp{}, {y, dy}), sums = c.step(BatchNormGradSumsOp{}, {x, masked, stats});
    c.outputs = {masked, sums, sums + 1};
    return c;
}
OpCase recomputed_sums(Draw& d) {
    const auto n = draw_norm(d);
    OpCase c;
    const int x = c.input(kReal, n.x), stats = c.input(kPrecise, n.stats), gamma = c.input(kPrecise, n.gamma),
              beta = c.input(kPrecise, n.beta), dy = c.input(kReal, n.dy);
    const int masked = c.step(UnaryGradOp{}, {c.step(BatchNormalizeOp{}, {x, stats, gamma, beta}), dy});
    const int sums = c.step(BatchNormGradSumsOp{}, {x, masked, stats});
    c.outputs = {sums, sums + 1};
    return c;
}
OpCase recomputed_grad_input(Draw& d) {
    const auto n = draw_norm(d);
    OpCase c;
    const int x = c.input(kReal, n.x), stats = c.input(kPrecise, n.stats), gamma = c.input(kPrecise, n.gamma),
              beta = c.input(kPrecise, n.beta), dy = c.input(kReal, n.dy), dgamma = c.input(kPrecise, n.dgamma),
              dbeta = c.input(kPrecise, n.dbeta);
    const int masked = c.step(UnaryGradOp{}, {c.step(BatchNormalizeOp{}, {x, stats, gamma, beta}), dy});
    c.outputs = {c.step(BatchNormGradInputOp{.count = count_of(n.x)}, {x, masked, stats, gamma, dgamma, dbeta})};
    return c;
}
OpCase masked_sums_of_sum(Draw& d) {
    const auto n = draw_norm(d);
    OpCase c;
    const int one = c.input(kReal, n.dy), other = c.input(kReal, d.normal(n.x.shape())), y = c.input(kReal, d.normal(n.x.shape())),
              x = c.input(kReal, n.x), stats = c.input(kPrecise, n.stats);
    const int masked = c.step(UnaryGradOp{}, {y, c.step(AddOp{}, {one, other})}), sums = c.step(BatchNormGradSumsOp{}, {x, masked, stats});
    c.outputs = {masked, sums, sums + 1};
    return c;
}
OpCase masked_bias_grad(Draw& d) {
    const Shape shape = any_activation(d);
    const UnaryOp after = draw_rectifier(d);
    OpCase c;
    const int y = c.input(kReal, d.normal(shape)), dy = c.input(kReal, d.normal(shape));
    const int masked = c.step(UnaryGradOp{after.kind, after.alpha}, {y, dy});
    c.outputs = {masked, c.step(BiasGradOp{1, 1}, {masked})};
    return c;
}
OpCase masked_max_pool_grad(Draw& d) {
    const auto p = draw_max_window(d);
    const Shape x = with_space(d, p.in), y = join({x[0], x[1]}, p.out);
    const UnaryOp after = draw_rectifier(d);
    OpCase c;
    const auto [element, where] = where_of(p.window, d.normal(x), y);
    const int dy = c.input(kReal, d.normal(y)), at = c.input(element, where), saved = c.input(kReal, d.normal(x));
    c.outputs = {c.step(UnaryGradOp{after.kind, after.alpha}, {saved, c.step(MaxPoolGradOp{p.window, p.in}, {dy, at})})};
    return c;
}
OpCase add_activation(Draw& d) {
    const Shape shape = any_activation(d);
    OpCase c;
    const int a = c.input(kReal, d.normal(shape)), b = c.input(kReal, d.normal(shape));
    c.outputs = {c.step(draw_rectifier(d), {c.step(AddOp{}, {a, b})})};
    return c;
}
OpCase many_updates(Draw& d) {
    OpCase c;
    const UpdateOp op{draw_rule(d), d.coin()};
    const int hyper = c.input(kPrecise, draw_hyper(d));
    for (int64_t i = d.between(2, 70); i > 0; --i) add_update(c, d, op, d.coin() ? Shape{d.between(1, 40)} : Shape{8, 4, 3, 3}, hyper);
    add_update_outputs(c);
    return c;
}

}  // namespace

int OpCase::input(Element element, Tensor tensor) {
    values.push_back({tensor.shape(), element});
    inputs.push_back(std::move(tensor));
    return static_cast<int>(values.size()) - 1;
}

int OpCase::step(const Op& op, std::vector<int> from) {
    std::vector<ValueType> types;
    for (const int v : from) types.push_back(values[static_cast<size_t>(v)]);
    Step s{op, std::move(from), {}};
    for (const ValueType& type : infer(op, types)) {
        s.outputs.push_back(static_cast<int>(values.size()));
        values.push_back(type);
    }
    const int first = s.outputs[0];
    steps.push_back(std::move(s));
    return first;
}

Problem OpCase::problem(const Target& target, DType compute) const {
    std::vector<int> number(values.size(), -1);
    ProblemBuilder b;
    const auto stored = [&](size_t v) { return target.storage(values[v].element, compute); };
    for (size_t v = 0; v < inputs.size(); ++v) number[v] = b.input(values[v].shape, stored(v));
    for (const int v : outputs) {
        const auto at = static_cast<size_t>(v);
        number[at] = b.output(values[at].shape, stored(at));
    }
    for (size_t v = inputs.size(); v < values.size(); ++v)
        if (number[v] < 0) number[v] = b.inside(values[v].shape, stored(v));
    const auto numbers = [&](const std::vector<int>& of) {
        std::vector<int> result;
        for (const int v : of) result.push_back(number[static_cast<size_t>(v)]);
        return result;
    };
    for (const Step& s : steps) b.step(s.op, numbers(s.inputs), numbers(s.outputs));
    b.problem.compute = compute;
    return b.problem;
}

const std::vector<NamedCase>& op_cases() {
    static const std::vector<NamedCase> cases{{"conv", conv},
                                              {"conv_usual", conv_usual},
                                              {"conv_grad_input", conv_grad_input},
                                              {"conv_grad_weight", conv_grad_weight},
                                              {"linear", linear},
                                              {"linear_grad_input", linear_grad_input},
                                              {"linear_grad_weight", linear_grad_weight},
                                              {"local_conv", local_conv},
                                              {"local_conv_grad_input", local_conv_grad_input},
                                              {"local_conv_grad_weight", local_conv_grad_weight},
                                              {"bias", bias},
                                              {"bias_grad", bias_grad},
                                              {"max_pool", max_pool},
                                              {"max_pool_grad", max_pool_grad},
                                              {"max_index", max_index},
                                              {"average_pool", average_pool},
                                              {"average_pool_grad", average_pool_grad},
                                              {"adaptive_pool", adaptive_pool},
                                              {"adaptive_pool_grad", adaptive_pool_grad},
                                              {"upsample", upsample},
                                              {"upsample_grad", upsample_grad},
                                              {"batch_stats", batch_stats},
                                              {"running_stats", running_stats},
                                              {"running_update", running_update},
                                              {"batch_normalize", batch_normalize},
                                              {"batch_norm_grad_sums", batch_norm_grad_sums},
                                              {"batch_norm_grad_input", batch_norm_grad_input},
                                              {"batch_norm_fixed_grad_input", batch_norm_fixed_grad_input},
                                              {"cell_stats", cell_stats},
                                              {"cell_normalize", cell_normalize},
                                              {"cell_norm_grad_affine", cell_norm_grad_affine},
                                              {"cell_norm_grad_sums", cell_norm_grad_sums},
                                              {"cell_norm_grad_input", cell_norm_grad_input},
                                              {"lrn", lrn},
                                              {"lrn_grad", lrn_grad},
                                              {"unary", unary},
                                              {"unary_grad", unary_grad},
                                              {"pointwise", pointwise},
                                              {"pointwise_grad", pointwise_grad},
                                              {"prelu", prelu},
                                              {"prelu_grad_input", prelu_grad_input},
                                              {"prelu_grad_slope", prelu_grad_slope},
                                              {"softmax", softmax},
                                              {"softmax_grad", softmax_grad},
                                              {"log_softmax", log_softmax},
                                              {"log_softmax_grad", log_softmax_grad},
                                              {"dropout", dropout},
                                              {"add", add},
                                              {"mul", mul},
                                              {"scale", scale},
                                              {"expand", expand},
                                              {"sum_to", sum_to},
                                              {"concat", concat},
                                              {"slice", slice},
                                              {"pad", pad},
                                              {"reshape", reshape},
                                              {"transpose", transpose},
                                              {"cross_entropy", cross_entropy},
                                              {"cross_entropy_grad", cross_entropy_grad},
                                              {"nll", nll},
                                              {"nll_grad", nll_grad},
                                              {"target_weight", target_weight},
                                              {"error_loss", error_loss},
                                              {"error_loss_grad", error_loss_grad},
                                              {"correct", correct},
                                              {"squared_norm", squared_norm},
                                              {"clip_scale", clip_scale},
                                              {"update", update},
                                              {"lamb_direction", lamb_direction},
                                              {"lamb_apply", lamb_apply},
                                              {"pack", pack},
                                              {"unpack", unpack},
                                              {"merge_stats", merge_stats}};
    return cases;
}

const std::vector<NamedCase>& pattern_cases() {
    static const std::vector<NamedCase> cases{{"conv_bias_activation", conv_bias_activation},
                                              {"bias_activation", bias_activation},
                                              {"normalize_add_relu", normalize_add_relu},
                                              {"masked_sums", masked_sums},
                                              {"masked_sums_of_sum", masked_sums_of_sum},
                                              {"recomputed_sums", recomputed_sums},
                                              {"recomputed_grad_input", recomputed_grad_input},
                                              {"masked_bias_grad", masked_bias_grad},
                                              {"masked_max_pool_grad", masked_max_pool_grad},
                                              {"add_activation", add_activation},
                                              {"many_updates", many_updates}};
    return cases;
}

}  // namespace convoy::op_testing
