// Shape inference of layers with windows and weights: convolutions, fully connected layers, biases, pooling and resampling.
#include "base/error.h"
#include "model/infer_rules.h"

namespace convoy::infer_rules {

namespace {

Dims spatial(const ValueType& t) { return t.shape.slice(2); }

// An activation [N, C, spatial...] with at least one spatial dim, of the window's rank.
void expect_activation(const ValueType& x, const Window& w, const char* what) {
    require(x.shape.size() == w.rank() + 2, "{} is {}, expected N x C and {} spatial dims", what, to_string(x.shape), w.rank());
}

Dims window_output(const Window& w, const Dims& input) {
    const Dims out = w.output(input);
    for (int i = 0; i < out.size(); ++i)
        require(out[i] > 0, "a window of {} with padding {} and {} does not fit into {}", w.extent(i), w.pad_lo[i], w.pad_hi[i],
                to_string(input));
    return out;
}

void expect_matrix(const ValueType& t, const char* what) {
    require(t.shape.size() == 2, "{} is {}, expected two dims (flatten first)", what, to_string(t.shape));
}

Shape local_weight(const Window& window, int64_t filters, int64_t in_channels, const Dims& out) {
    return join(join(join({filters}, out), {in_channels}), window.kernel);
}

Element where_element(const Window& window) { return numel(window.kernel) <= 256 ? Element::Byte : Element::Index; }

Window with_overflow(Window window, const Dims& overflow) {
    for (int i = 0; i < overflow.size(); ++i) window.pad_hi[i] += overflow[i];
    return window;
}

Types resized(const Types& in, const Dims& size, size_t inputs = 1) {
    expect_count(in, inputs);
    require(in[0].shape.size() == size.size() + 2, "the input is {}, expected N x C and {} spatial dims", to_string(in[0].shape),
            size.size());
    for (const int64_t s : size) require(s > 0, "cannot resize {} to {}", to_string(in[0].shape), to_string(size));
    return {real(join(in[0].shape.slice(0, 2), size))};
}

}  // namespace

Types infer_op(const ConvOp& op, const Types& in) {
    expect_count(in, 2);
    const Shape &x = in[0].shape, &w = in[1].shape;
    expect_activation(in[0], op.window, "the input");
    require(op.groups > 0 && x[1] % op.groups == 0 && w[0] % op.groups == 0, "{} channels and {} filters do not divide into {} groups",
            x[1], w[0], op.groups);
    expect_shape(in[1], join({w[0], x[1] / op.groups}, op.window.kernel), "the weight");
    return {real(join({x[0], w[0]}, window_output(op.window, spatial(in[0]))))};
}

Types infer_op(const ConvGradInputOp& op, const Types& in) {
    expect_count(in, 2);
    const Shape &dy = in[0].shape, &w = in[1].shape;
    expect_activation(in[0], op.window, "the input");
    require(w.size() == dy.size() && w[0] == dy[1] && op.groups > 0 && w[0] % op.groups == 0,
            "the weight is {}, which does not fit {} channels in {} groups", to_string(w), dy[1], op.groups);
    expect_shape(in[1], join({w[0], w[1]}, op.window.kernel), "the weight");
    require(op.window.output(op.input) == spatial(in[0]), "an output of {} does not come from {} under this window", to_string(op.input),
            to_string(spatial(in[0])));
    return {real(join({dy[0], w[1] * op.groups}, op.input))};
}

Types infer_op(const ConvGradWeightOp& op, const Types& in) {
    expect_count(in, 2);
    const Shape &x = in[0].shape, &dy = in[1].shape;
    expect_activation(in[0], op.window, "the input");
    expect_shape(in[1], join({x[0], dy[1]}, op.window.output(spatial(in[0]))), "the output gradient");
    require(x[1] % op.groups == 0 && dy[1] % op.groups == 0, "{} channels and {} filters do not divide into {} groups", x[1], dy[1],
            op.groups);
    return {precise(join({dy[1], x[1] / op.groups}, op.window.kernel))};
}

Types infer_op(const LinearOp&, const Types& in) {
    expect_count(in, 2);
    expect_matrix(in[0], "the input");
    expect_shape(in[1], {in[1].shape[0], in[0].shape[1]}, "the weight");
    return {real({in[0].shape[0], in[1].shape[0]})};
}

Types infer_op(const LinearGradInputOp&, const Types& in) {
    expect_count(in, 2);
    expect_matrix(in[0], "the output gradient");
    expect_shape(in[1], {in[0].shape[1], in[1].shape[1]}, "the weight");
    return {real({in[0].shape[0], in[1].shape[1]})};
}

Types infer_op(const LinearGradWeightOp&, const Types& in) {
    expect_count(in, 2);
    expect_matrix(in[0], "the input");
    expect_shape(in[1], {in[0].shape[0], in[1].shape[1]}, "the output gradient");
    return {precise({in[1].shape[1], in[0].shape[1]})};
}

Types infer_op(const LocalConvOp& op, const Types& in) {
    expect_count(in, 2);
    expect_activation(in[0], op.window, "the input");
    const Dims out = window_output(op.window, spatial(in[0]));
    expect_shape(in[1], local_weight(op.window, in[1].shape[0], channels(in[0]), out), "the weight");
    return {real(join({in[0].shape[0], in[1].shape[0]}, out))};
}

Types infer_op(const LocalConvGradInputOp& op, const Types& in) {
    expect_count(in, 2);
    expect_activation(in[0], op.window, "the output gradient");
    const int64_t in_channels = in[1].shape[1 + op.window.rank()];
    expect_shape(in[1], local_weight(op.window, channels(in[0]), in_channels, spatial(in[0])), "the weight");
    return {real(join({in[0].shape[0], in_channels}, op.input))};
}

Types infer_op(const LocalConvGradWeightOp& op, const Types& in) {
    expect_count(in, 2);
    expect_activation(in[0], op.window, "the input");
    expect_shape(in[1], join({in[0].shape[0], channels(in[1])}, op.window.output(spatial(in[0]))), "the output gradient");
    return {precise(local_weight(op.window, channels(in[1]), channels(in[0]), spatial(in[1])))};
}

Types infer_op(const BiasOp& op, const Types& in) {
    expect_count(in, 2);
    const int rank = in[1].shape.size();
    require(op.axis >= 0 && op.axis + rank <= in[0].shape.size(), "a bias of {} at dim {} does not fit {}", to_string(in[1].shape), op.axis,
            to_string(in[0].shape));
    expect_shape(in[1], in[0].shape.slice(op.axis, op.axis + rank), "the bias");
    return {in[0]};
}

Types infer_op(const BiasGradOp& op, const Types& in) {
    expect_count(in, 1);
    require(op.axis >= 0 && op.axis + op.rank <= in[0].shape.size(), "no dims {}..{} in {}", op.axis, op.axis + op.rank,
            to_string(in[0].shape));
    return {precise(in[0].shape.slice(op.axis, op.axis + op.rank))};
}

Types infer_op(const MaxPoolOp& op, const Types& in) {
    expect_count(in, 1);
    expect_activation(in[0], op.window, "the input");
    for (int i = 0; i < op.window.rank(); ++i)
        require(op.window.pad_lo[i] < op.window.extent(i), "padding {} leaves a window of {} outside the input", op.window.pad_lo[i],
                op.window.extent(i));
    const Shape shape = join(in[0].shape.slice(0, 2), window_output(op.window, spatial(in[0])));
    return {real(shape), {shape, where_element(op.window)}};
}

Types infer_op(const MaxPoolGradOp& op, const Types& in) {
    expect_count(in, 2);
    expect_same(in);
    expect_activation(in[0], op.window, "the output gradient");
    return {real(join(in[0].shape.slice(0, 2), op.input))};
}

Types infer_op(const MaxIndexOp& op, const Types& in) {
    expect_count(in, 1);
    expect_activation(in[0], op.window, "the positions");
    require(op.window.output(op.input) == spatial(in[0]), "positions of {} do not come from {} under this window",
            to_string(spatial(in[0])), to_string(op.input));
    return {{in[0].shape, Element::Index}};
}

Types infer_op(const AveragePoolOp& op, const Types& in) {
    expect_count(in, 1);
    expect_activation(in[0], op.window, "the input");
    return {real(join(in[0].shape.slice(0, 2), window_output(with_overflow(op.window, op.overflow), spatial(in[0]))))};
}

Types infer_op(const AveragePoolGradOp& op, const Types& in) {
    expect_count(in, 1);
    expect_activation(in[0], op.window, "the output gradient");
    return {real(join(in[0].shape.slice(0, 2), op.input))};
}

Types infer_op(const AdaptivePoolOp& op, const Types& in) { return resized(in, op.output); }
Types infer_op(const AdaptivePoolGradOp& op, const Types& in) { return resized(in, op.input); }
Types infer_op(const UpsampleOp& op, const Types& in) { return resized(in, op.output); }
Types infer_op(const UpsampleGradOp& op, const Types& in) { return resized(in, op.input); }

}  // namespace convoy::infer_rules
