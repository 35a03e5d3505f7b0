// Activations, functions of one number, and arithmetic by NumPy's rules.
#include <cmath>
#include <limits>

#include "onnx/context.h"

namespace convoy::onnx {

namespace {

template <Unary kind>
void unary(NodeContext& c) {
    c.set(0, c.add(UnaryOp{kind, 0}, {c.value(0)}));
}
template <Pointwise kind>
void pointwise(NodeContext& c) {
    c.set(0, c.map(kind, c.value(0)));
}

void leaky_relu(NodeContext& c) {
    const double alpha = c.real("alpha", 0.01);
    if (alpha < 0) c.refuse(fmt::format("a slope of {}, expected at least 0", alpha));
    c.set(0, c.add(UnaryOp{Unary::LeakyRelu, alpha}, {c.value(0)}));
}
void elu(NodeContext& c) { c.set(0, c.map(Pointwise::Elu, c.value(0), c.real("alpha", 1))); }
void selu(NodeContext& c) {
    const double alpha = c.real("alpha", 1.67326319217681884765625), gamma = c.real("gamma", 1.05070102214813232421875);
    c.set(0, c.scale(c.map(Pointwise::Elu, c.value(0), alpha), gamma));
}
void celu(NodeContext& c) {
    const double alpha = c.real("alpha", 1);
    if (alpha == 0) c.refuse("an alpha of 0");
    c.set(0, c.scale(c.map(Pointwise::Elu, c.scale(c.value(0), 1 / alpha), 1), alpha));
}
void hard_sigmoid(NodeContext& c) { c.set(0, c.map(Pointwise::HardSigmoid, c.value(0), c.real("alpha", 0.2), c.real("beta", 0.5))); }
void thresholded_relu(NodeContext& c) { c.set(0, c.map(Pointwise::ThresholdedRelu, c.value(0), c.real("alpha", 1))); }
void shrink(NodeContext& c) { c.set(0, c.map(Pointwise::Shrink, c.value(0), c.real("lambd", 0.5), c.real("bias", 0))); }
void negative(NodeContext& c) { c.set(0, c.negative(c.value(0))); }

void clip(NodeContext& c) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    double low = -kInfinity, high = kInfinity;
    if (c.opset() < 11) {
        low = c.real("min", low);
        high = c.real("max", high);
    } else {
        if (c.has(1)) low = c.known_number(1);
        if (c.has(2)) high = c.known_number(2);
    }
    const ValueId x = c.value(0);
    if (low == 0 && high == 6) return c.set(0, c.add(UnaryOp{Unary::Relu6, 0}, {x}));
    if (low == 0 && high > 1e38) return c.set(0, c.add(UnaryOp{Unary::Relu, 0}, {x}));
    c.set(0, low == -kInfinity && high == kInfinity ? x : c.map(Pointwise::Clip, x, std::min(low, high), high));
}

// One slope, one for each channel, or any that repeats to x: max(x, 0) - slope * max(-x, 0).
void prelu(NodeContext& c) {
    const ValueId x = c.value(0), slope = c.value(1);
    const Shape shape = c.shape(0), s = c.shape(1);
    const bool vector = c.opset() < 7 && s.size() == 1;  // where a vector stood for channels
    const Shape full = vector ? s : join(Dims::filled(std::max(0, shape.size() - s.size()), 1), s);
    const bool by_channel = shape.size() >= 2 && numel(s) == shape[1] && (vector || (full.size() == shape.size() && full[1] == shape[1]));
    if (shape.size() >= 2 && (numel(s) == 1 || by_channel)) return c.set(0, c.add(PReluOp{}, {x, c.reshape(slope, {numel(s)})}));
    const ValueId above = c.add(UnaryOp{Unary::Relu, 0}, {x}), below = c.add(UnaryOp{Unary::Relu, 0}, {c.negative(x)});
    c.set(0, c.plus(above, c.negative(c.times(below, slope))));
}

// --- Arithmetic. A single known number scales or shifts; anything else is a tensor ---

// The second operand, placed as the sets before 7 say: its dims stand at `axis` when `broadcast` is set.
ValueId second(NodeContext& c) {
    const ValueId b = c.value(1);
    if (c.opset() >= 7) return b;
    const Shape x = c.shape(0), s = c.shape(1);
    const bool broadcast = c.integer("broadcast", 0) != 0;
    c.integers("consumed_inputs");
    const int64_t axis = c.has_attribute("axis") ? c.axis_in(c.integer("axis", 0), x.size()) : x.size() - s.size();
    if (!broadcast || s.empty()) return b;
    const int64_t after = x.size() - axis - s.size();
    if (axis < 0 || after < 0) c.refuse(fmt::format("{} does not stand at dim {} of {}", to_string(s), axis, to_string(x)));
    return c.reshape(b, join(join(Dims::filled(static_cast<int>(axis), 1), s), Dims::filled(static_cast<int>(after), 1)));
}

// Whether a known single number leaves the other operand's shape as it is.
bool is_number(NodeContext& c, size_t i) { return c.is_known(i) && c.is_scalar(i) && c.shape(i).size() <= c.shape(1 - i).size(); }
void settle_axis(NodeContext& c) {
    if (c.opset() >= 7) return;
    for (const char* name : {"axis", "broadcast"}) c.integer(name, 0);
    c.integers("consumed_inputs");
}

void add(NodeContext& c) {
    for (const size_t i : {1u, 0u})
        if (is_number(c, i)) {
            settle_axis(c);
            return c.set(0, c.shift(c.value(1 - i), c.known_number(i)));
        }
    c.set(0, c.plus(c.value(0), second(c)));
}
void sub(NodeContext& c) {
    if (is_number(c, 1)) {
        settle_axis(c);
        return c.set(0, c.shift(c.value(0), -c.known_number(1)));
    }
    if (is_number(c, 0)) {
        settle_axis(c);
        return c.set(0, c.shift(c.negative(c.value(1)), c.known_number(0)));
    }
    c.set(0, c.plus(c.value(0), c.negative(second(c))));
}
void mul(NodeContext& c) {
    for (const size_t i : {1u, 0u})
        if (is_number(c, i)) {
            settle_axis(c);
            return c.set(0, c.scale(c.value(1 - i), c.known_number(i)));
        }
    c.set(0, c.times(c.value(0), second(c)));
}
void div(NodeContext& c) {
    if (is_number(c, 1)) {
        settle_axis(c);
        return c.set(0, c.scale(c.value(0), 1 / c.known_number(1)));
    }
    if (is_number(c, 0)) {
        settle_axis(c);
        return c.set(0, c.scale(c.map(Pointwise::Reciprocal, c.value(1)), c.known_number(0)));
    }
    c.set(0, c.times(c.value(0), c.map(Pointwise::Reciprocal, second(c))));
}

void pow(NodeContext& c) {
    if (!c.is_known(1)) c.known(1);
    settle_axis(c);
    const Tensor exponents = c.known(1);
    const double first = exponents.numel() > 0 ? element(exponents, 0) : 0;
    for (int64_t i = 0; i < exponents.numel(); ++i)
        if (element(exponents, i) != first || exponents.numel() > numel(c.shape(0)) || c.shape(1).size() > c.shape(0).size())
            c.refuse("its exponents differ, expected one number");
    const ValueId x = c.value(0);
    c.set(0, first == 1 ? x : first == 2 ? c.add(MulOp{}, {x, x}) : c.map(Pointwise::Power, x, first));
}

std::vector<ValueId> of_one_shape(NodeContext& c) {
    if (c.inputs() == 0) c.refuse("it has no input");
    Shape shape = c.shape(0);
    for (size_t i = 1; i < c.inputs(); ++i) shape = broadcast_shape(shape, c.shape(i));
    std::vector<ValueId> values;
    for (size_t i = 0; i < c.inputs(); ++i) values.push_back(c.broadcast(c.value(i), shape));
    return values;
}
ValueId total(NodeContext& c) {
    const auto values = of_one_shape(c);
    return values.size() == 1 ? values[0] : c.add(AddOp{}, values);
}
void sum(NodeContext& c) { c.set(0, total(c)); }
void mean(NodeContext& c) { c.set(0, c.scale(total(c), 1.0 / static_cast<double>(c.inputs()))); }

// Side by side along a new last dim, of which the maximum is taken.
ValueId largest(NodeContext& c, const std::vector<ValueId>& values) {
    if (values.size() == 1) return values[0];
    const Shape shape = c.shape_of(values[0]);
    std::vector<ValueId> columns;
    for (const ValueId v : values) columns.push_back(c.reshape(v, {numel(shape), 1}));
    return c.reshape(c.max_over(c.add(ConcatOp{1}, columns), {1}), shape);
}
void max(NodeContext& c) { c.set(0, largest(c, of_one_shape(c))); }
void min(NodeContext& c) {
    auto values = of_one_shape(c);
    if (values.size() == 1) return c.set(0, values[0]);
    for (auto& v : values) v = c.negative(v);
    c.set(0, c.negative(largest(c, values)));
}

}  // namespace

std::span<const OpEntry> pointwise_ops() {
    using P = Pointwise;
    static constexpr OpEntry entries[] = {{"Relu", unary<Unary::Relu>},
                                          {"Sigmoid", unary<Unary::Sigmoid>},
                                          {"Tanh", unary<Unary::Tanh>},
                                          {"LeakyRelu", leaky_relu},
                                          {"Elu", elu},
                                          {"Selu", selu},
                                          {"Celu", celu},
                                          {"HardSigmoid", hard_sigmoid},
                                          {"HardSwish", pointwise<P::HardSwish>},
                                          {"Softplus", pointwise<P::Softplus>},
                                          {"Softsign", pointwise<P::Softsign>},
                                          {"ThresholdedRelu", thresholded_relu},
                                          {"Shrink", shrink},
                                          {"Clip", clip},
                                          {"PRelu", prelu},
                                          {"Exp", pointwise<P::Exp>},
                                          {"Log", pointwise<P::Log>},
                                          {"Sqrt", pointwise<P::Sqrt>},
                                          {"Reciprocal", pointwise<P::Reciprocal>},
                                          {"Abs", pointwise<P::Abs>},
                                          {"Erf", pointwise<P::Erf>},
                                          {"Sin", pointwise<P::Sin>},
                                          {"Cos", pointwise<P::Cos>},
                                          {"Tan", pointwise<P::Tan>},
                                          {"Asin", pointwise<P::Asin>},
                                          {"Acos", pointwise<P::Acos>},
                                          {"Atan", pointwise<P::Atan>},
                                          {"Sinh", pointwise<P::Sinh>},
                                          {"Cosh", pointwise<P::Cosh>},
                                          {"Asinh", pointwise<P::Asinh>},
                                          {"Acosh", pointwise<P::Acosh>},
                                          {"Atanh", pointwise<P::Atanh>},
                                          {"Sign", pointwise<P::Sign>},
                                          {"Floor", pointwise<P::Floor>},
                                          {"Ceil", pointwise<P::Ceil>},
                                          {"Round", pointwise<P::Round>},
                                          {"Neg", negative},
                                          {"Add", add},
                                          {"Sub", sub},
                                          {"Mul", mul},
                                          {"Div", div},
                                          {"Pow", pow},
                                          {"Sum", sum},
                                          {"Mean", mean},
                                          {"Max", max},
                                          {"Min", min}};
    return entries;
}

}  // namespace convoy::onnx
