#include "kernels/op_cases/draws.h"

#include <algorithm>

namespace convoy::op_testing {

using ref::testing::draw_window;
using ref::testing::WindowProblem;

OpCase one(const Op& op, const std::vector<std::pair<Element, Tensor>>& inputs) {
    OpCase c;
    std::vector<int> from;
    for (const auto& [element, tensor] : inputs) from.push_back(c.input(element, tensor));
    const int first = c.step(op, from);
    for (int v = first; v < static_cast<int>(c.values.size()); ++v) c.outputs.push_back(v);
    return c;
}

Tensor by_reference(const Op& op, const std::vector<Tensor>& inputs, const Shape& output) {
    return ref::testing::run_op1(op, inputs, output);
}

Shape activation(Draw& d, int64_t most_channels) {
    const int rank = static_cast<int>(d.between(1, 3));
    const int64_t channels = d.coin() ? d.between(1, most_channels) : 8 * d.between(1, std::max<int64_t>(1, most_channels / 8));
    return join({d.between(3, 6), channels}, d.dims(rank, 3, rank == 3 ? 5 : 9));
}

Shape any_activation(Draw& d) { return d.between(0, 3) == 0 ? Shape{d.between(9, 33), d.between(1, 50)} : activation(d); }

Shape with_space(Draw& d, const Dims& space) { return join({d.between(1, 4), d.coin() ? 8 * d.between(1, 4) : d.between(1, 9)}, space); }

Tensor positive(Draw& d, const Shape& shape) {
    Tensor t = d.normal(shape);
    for (auto& v : t.as<double>()) v = 0.2 + v * v;
    return t;
}

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

ConvShapes draw_conv(Draw& d, bool crops) {
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

WindowProblem draw_max_window(Draw& d) {
    while (true) {
        // As often as not such as real nets have: without gaps, over lines of whole packs.
        const bool plain = d.coin();
        WindowProblem p =
            plain ? draw_window(d, {.dilation = 1, .pad_least = 0, .pad_most = 1}) : draw_window(d, {.pad_least = 0, .pad_most = 1});
        if (plain) {
            const int last = p.window.rank() - 1;
            p.in[last] = std::max<int64_t>(8 * d.between(1, 3), p.window.extent(last));
            p.out = p.window.output(p.in);
        }
        bool inside = true;
        for (int i = 0; i < p.window.rank(); ++i) inside = inside && std::max(p.window.pad_lo[i], p.window.pad_hi[i]) < p.window.extent(i);
        if (inside) return p;
    }
}

std::pair<Element, Tensor> where_of(const Window& window, const Tensor& x, const Shape& y) {
    const ValueType type = infer(MaxPoolOp{window}, {{x.shape(), kReal}})[1];
    const DType stored = type.element == Element::Byte ? DType::u8 : DType::i32;
    return {type.element,
            ref::testing::run_op(MaxPoolOp{window}, {x}, {TensorDesc::whole(y, DType::f64), TensorDesc::whole(y, stored)})[1]};
}

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

Tensor draw_hyper(Draw& d) { return Tensor::of<double>({2}, {d.real(0.001, 0.1), static_cast<double>(d.between(1, 20))}); }

UpdateRule draw_rule(Draw& d) { return {.rule = static_cast<Rule>(d.between(0, 7)), .weight_decay = d.coin() ? 0.01 : 0}; }

void add_update(OpCase& c, Draw& d, const UpdateOp& op, const Shape& shape, int hyper) {
    std::vector<int> in{c.input(kPrecise, d.normal(shape)), c.input(kPrecise, d.normal(shape)), hyper};
    for (int i = 0; i < slots_of(op.rule.rule); ++i) in.push_back(c.input(kPrecise, positive(d, shape)));
    if (op.rule.rule == Rule::Lars)
        for (int i = 0; i < 2; ++i) in.push_back(c.input(kPrecise, positive(d, {1})));
    if (op.clipped) in.push_back(c.input(kPrecise, positive(d, {1})));
    c.steps.push_back({op, in, {}});
}

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

}  // namespace convoy::op_testing
