// Ops on elements, one by one or along a dim, and ops that only move them.
#include <algorithm>

#include "kernels/op_cases/draws.h"
#include "kernels/op_cases/families.h"

namespace convoy::op_testing {

namespace {

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

}  // namespace

std::vector<NamedCase> elementwise_cases() {
    return {{"unary", unary},
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
            {"pack", pack},
            {"unpack", unpack}};
}

}  // namespace convoy::op_testing
