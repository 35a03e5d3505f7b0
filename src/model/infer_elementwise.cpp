// Shape inference of ops on elements, one by one or along a dim, and of those that only move them.
#include <algorithm>

#include "base/error.h"
#include "model/infer_rules.h"

namespace convoy::infer_rules {

namespace {

Types same_as_first(const Types& in, size_t count) {
    expect_count(in, count);
    return {real(in[0].shape)};
}

void expect_slope(const Types& in) {
    expect_rank2(in);
    require(in[1].shape == Shape{1} || in[1].shape == Shape{channels(in[0])}, "the slope is {}, expected 1 or {}", to_string(in[1].shape),
            channels(in[0]));
}

void expect_axis(int axis, const ValueType& t) { require(axis >= 0 && axis < t.shape.size(), "no dim {} in {}", axis, to_string(t.shape)); }

// Softmax and its logarithm.
Types along(int axis, const Types& in) {
    expect_count(in, 1);
    expect_axis(axis, in[0]);
    return {real(in[0].shape)};
}
Types along_grad(int axis, const Types& in) {
    auto out = pair_of_one_shape(in);
    expect_axis(axis, in[0]);
    return out;
}

void expect_expands(const Shape& from, const Shape& to) {
    bool fits = from.size() == to.size();
    for (int i = 0; fits && i < from.size(); ++i) fits = from[i] == to[i] || from[i] == 1;
    require(fits, "{} does not expand to {}", to_string(from), to_string(to));
}

int64_t elements_of(const std::vector<Box>& boxes) {
    int64_t total = 0;
    for (const Box& box : boxes) total += numel(box.shape);
    return total;
}

}  // namespace

Types infer_op(const UnaryOp&, const Types& in) { return same_as_first(in, 1); }
Types infer_op(const UnaryGradOp&, const Types& in) { return pair_of_one_shape(in); }

Types infer_op(const PointwiseOp& op, const Types& in) {
    require(op.kind != Pointwise::Clip || op.a <= op.b, "clip to {}..{}, expected a lower limit that is not above the upper one", op.a,
            op.b);
    return same_as_first(in, 1);
}

Types infer_op(const PointwiseGradOp&, const Types& in) { return pair_of_one_shape(in); }

Types infer_op(const PReluOp&, const Types& in) {
    expect_count(in, 2);
    expect_slope(in);
    return {real(in[0].shape)};
}

Types infer_op(const PReluGradInputOp&, const Types& in) {
    expect_count(in, 3);
    expect_slope(in);
    expect_shape(in[2], in[0].shape, "the output gradient");
    return {real(in[0].shape)};
}

Types infer_op(const PReluGradSlopeOp& op, const Types& in) {
    pair_of_one_shape(in);
    return {precise({op.slopes})};
}

Types infer_op(const SoftmaxOp& op, const Types& in) { return along(op.axis, in); }
Types infer_op(const SoftmaxGradOp& op, const Types& in) { return along_grad(op.axis, in); }
Types infer_op(const LogSoftmaxOp& op, const Types& in) { return along(op.axis, in); }
Types infer_op(const LogSoftmaxGradOp& op, const Types& in) { return along_grad(op.axis, in); }

Types infer_op(const DropoutOp& op, const Types& in) {
    require(op.p >= 0 && op.p < 1, "a dropout probability of {}, expected 0 <= p < 1", op.p);
    return same_as_first(in, 1);
}

Types infer_op(const AddOp&, const Types& in) {
    expect_count(in, 2, 1u << 20);
    expect_same(in);
    return {in[0]};
}

Types infer_op(const MulOp&, const Types& in) {
    expect_count(in, 2);
    expect_same(in);
    return {in[0]};
}

Types infer_op(const ScaleOp&, const Types& in) {
    expect_count(in, 1);
    return {in[0]};
}

Types infer_op(const ExpandOp& op, const Types& in) {
    expect_count(in, 1);
    expect_expands(in[0].shape, op.shape);
    return {{op.shape, in[0].element}};
}

Types infer_op(const SumToOp& op, const Types& in) {
    expect_count(in, 1);
    expect_expands(op.shape, in[0].shape);
    return {{op.shape, in[0].element}};
}

Types infer_op(const ConcatOp& op, const Types& in) {
    expect_count(in, 2, 1u << 20);
    expect_axis(op.axis, in[0]);
    ValueType out = in[0];
    for (size_t i = 1; i < in.size(); ++i) {
        Shape expected = in[0].shape;
        if (in[i].shape.size() == expected.size()) expected[op.axis] = in[i].shape[op.axis];
        expect_shape(in[i], expected, "an input");
        out.shape[op.axis] += in[i].shape[op.axis];
    }
    return {out};
}

Types infer_op(const SliceOp& op, const Types& in) {
    expect_count(in, 1);
    const Shape& x = in[0].shape;
    require(op.start.size() == x.size() && op.size.size() == x.size(), "a slice of {} dims from {}", op.start.size(), to_string(x));
    for (int i = 0; i < x.size(); ++i)
        require(op.start[i] >= 0 && op.size[i] > 0 && op.start[i] + op.size[i] <= x[i], "a slice of {} from {} at {} does not lie inside",
                to_string(op.size), to_string(x), to_string(op.start));
    return {{op.size, in[0].element}};
}

Types infer_op(const PadOp& op, const Types& in) {
    expect_count(in, 1);
    ValueType out = in[0];
    require(op.lo.size() == out.shape.size() && op.hi.size() == out.shape.size(), "padding of {} dims for {}", op.lo.size(),
            to_string(out.shape));
    for (int i = 0; i < out.shape.size(); ++i) {
        out.shape[i] += op.lo[i] + op.hi[i];
        require(out.shape[i] > 0, "padding {} and {} leaves nothing of {}", op.lo[i], op.hi[i], to_string(in[0].shape));
    }
    return {out};
}

Types infer_op(const ReshapeOp& op, const Types& in) {
    expect_count(in, 1);
    require(numel(op.shape) == numel(in[0].shape), "{} has {} elements and cannot become {} with {}", to_string(in[0].shape),
            numel(in[0].shape), to_string(op.shape), numel(op.shape));
    return {{op.shape, in[0].element}};
}

Types infer_op(const TransposeOp& op, const Types& in) {
    expect_count(in, 1);
    ValueType out = in[0];
    Dims sorted = op.order;
    std::sort(sorted.begin(), sorted.end());
    bool fits = sorted.size() == out.shape.size();
    for (int i = 0; fits && i < out.shape.size(); ++i) fits = sorted[i] == i;
    require(fits, "{} is no order of the dims of {}", to_string(op.order), to_string(in[0].shape));
    for (int i = 0; i < out.shape.size(); ++i) out.shape[i] = in[0].shape[static_cast<int>(op.order[i])];
    return {out};
}

Types infer_op(const PackOp& op, const Types& in) {
    expect_count(in, 1);
    for (const Box& box : op.boxes)
        require(contains(Box::whole(in[0].shape), box), "box {} is not inside {}", to_string(box), to_string(in[0].shape));
    return {{{elements_of(op.boxes)}, in[0].element}};
}

// The shape of the result is not the op's to know: only the compiler makes these, and it does.
Types infer_op(const UnpackOp&, const Types&) { fail("unpack has no shape of its own"); }

}  // namespace convoy::infer_rules
