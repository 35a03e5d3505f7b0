// The patterns that backends do in one pass.
#include "kernels/op_cases/draws.h"

namespace convoy::op_testing {

namespace {

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
    c.outputs = {c.step(BatchNormGradInputOp{.count = n.count()}, {x, masked, stats, gamma, dgamma, dbeta})};
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
    const UnaryOp before = draw_rectifier(d);
    OpCase c;
    const auto [element, where] = where_of(p.window, d.normal(x), y);
    const int dy = c.input(kReal, d.normal(y)), at = c.input(element, where), saved = c.input(kReal, d.normal(y));
    c.outputs = {c.step(MaxPoolGradOp{p.window, p.in}, {c.step(UnaryGradOp{before.kind, before.alpha}, {saved, dy}), at})};
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
    for (int64_t i = d.between(1, 4) == 1 ? d.between(250, 270) : d.between(2, 70); i > 0; --i)
        add_update(c, d, op, d.coin() ? Shape{d.between(1, 40)} : Shape{8, 4, 3, 3}, hyper);
    add_update_outputs(c);
    return c;
}

}  // namespace

std::vector<NamedCase> pattern_cases() {
    return {{"conv_bias_activation", conv_bias_activation},
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
}

}  // namespace convoy::op_testing
