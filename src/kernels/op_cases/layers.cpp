// Layers with windows and weights: convolutions, fully connected layers, biases; pooling and resampling.
#include "kernels/op_cases/draws.h"
#include "kernels/op_cases/families.h"

namespace convoy::op_testing {

namespace {

using ref::testing::draw_window;
using ref::testing::WindowProblem;

// --- Convolutions and fully connected layers --------------------------------------------------------------------------------------

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

OpCase max_pool(Draw& d) {
    const auto p = draw_max_window(d);
    return one(MaxPoolOp{p.window}, {{kReal, d.normal(with_space(d, p.in))}});
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

}  // namespace

std::vector<NamedCase> layer_cases() {
    return {{"conv", conv},
            {"conv_usual", conv_usual, 60},
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
            {"upsample_grad", upsample_grad}};
}

}  // namespace convoy::op_testing
