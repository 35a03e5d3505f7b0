// Shape inference: what each op requires of its inputs, and the types of its outputs.
#include <algorithm>

#include "base/error.h"
#include "model/op.h"

namespace convoy {

namespace {

using Types = std::vector<ValueType>;

void expect_count(const Types& in, size_t least, size_t most) {
    require(least <= in.size() && in.size() <= most, "expected {} inputs, found {}",
            least == most ? fmt::format("{}", least) : fmt::format("{} to {}", least, most), in.size());
}
void expect_count(const Types& in, size_t count) { expect_count(in, count, count); }

void expect_shape(const ValueType& type, const Shape& shape, const char* what) {
    require(type.shape == shape, "{} is {}, expected {}", what, to_string(type.shape), to_string(shape));
}

void expect_same(const Types& in) {
    for (const auto& t : in) expect_shape(t, in[0].shape, "an input");
}

ValueType real(Shape shape) { return {shape, Element::Real}; }
ValueType precise(Shape shape) { return {shape, Element::Precise}; }
ValueType scalar() { return precise({1}); }
Dims spatial(const ValueType& t) { return t.shape.slice(2); }
int64_t channels(const ValueType& t) { return t.shape[1]; }

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

void expect_matrix(const ValueType& t, const char* what) {
    require(t.shape.size() == 2, "{} is {}, expected two dims (flatten first)", what, to_string(t.shape));
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

Shape local_weight(const Window& window, int64_t filters, int64_t in_channels, const Dims& out) {
    return join(join(join({filters}, out), {in_channels}), window.kernel);
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

Element where_element(const Window& window) { return numel(window.kernel) <= 256 ? Element::Byte : Element::Index; }

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

Window with_overflow(Window window, const Dims& overflow) {
    for (int i = 0; i < overflow.size(); ++i) window.pad_hi[i] += overflow[i];
    return window;
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

Types resized(const Types& in, const Dims& size, size_t inputs = 1) {
    expect_count(in, inputs);
    require(in[0].shape.size() == size.size() + 2, "the input is {}, expected N x C and {} spatial dims", to_string(in[0].shape),
            size.size());
    for (const int64_t s : size) require(s > 0, "cannot resize {} to {}", to_string(in[0].shape), to_string(size));
    return {real(join(in[0].shape.slice(0, 2), size))};
}

Types infer_op(const AdaptivePoolOp& op, const Types& in) { return resized(in, op.output); }
Types infer_op(const AdaptivePoolGradOp& op, const Types& in) { return resized(in, op.input); }
Types infer_op(const UpsampleOp& op, const Types& in) { return resized(in, op.output); }
Types infer_op(const UpsampleGradOp& op, const Types& in) { return resized(in, op.input); }

void expect_channels(const Types& in, size_t input, const char* what) { expect_shape(in[input], {channels(in[0])}, what); }
void expect_stats(const Types& in, size_t input) { expect_shape(in[input], {2, channels(in[0])}, "the statistics"); }
void expect_rank2(const Types& in) { require(in[0].shape.size() >= 2, "the input is {}, expected N x C ...", to_string(in[0].shape)); }

Types infer_op(const BatchStatsOp&, const Types& in) {
    expect_count(in, 1);
    expect_rank2(in);
    return {precise({2, channels(in[0])})};
}

Types infer_op(const RunningStatsOp&, const Types& in) {
    expect_count(in, 2);
    expect_same(in);
    return {precise({2, in[0].shape[0]})};
}

Types infer_op(const RunningUpdateOp&, const Types& in) {
    expect_count(in, 3);
    expect_shape(in[1], in[0].shape, "the running variance");
    expect_shape(in[2], {2, in[0].shape[0]}, "the statistics");
    return {in[0], in[1]};
}

Types infer_op(const BatchNormalizeOp&, const Types& in) {
    expect_count(in, 4);
    expect_rank2(in);
    expect_stats(in, 1);
    expect_channels(in, 2, "gamma");
    expect_channels(in, 3, "beta");
    return {real(in[0].shape)};
}

Types infer_op(const BatchNormGradSumsOp&, const Types& in) {
    expect_count(in, 3);
    expect_shape(in[1], in[0].shape, "the output gradient");
    expect_stats(in, 2);
    return {precise({channels(in[0])}), precise({channels(in[0])})};
}

Types infer_op(const BatchNormGradInputOp&, const Types& in) {
    expect_count(in, 6);
    expect_shape(in[1], in[0].shape, "the output gradient");
    expect_stats(in, 2);
    for (const size_t i : {3u, 4u, 5u}) expect_channels(in, i, "a per-channel input");
    return {real(in[0].shape)};
}

Types infer_op(const BatchNormFixedGradInputOp&, const Types& in) {
    expect_count(in, 3);
    expect_stats(in, 1);
    expect_channels(in, 2, "gamma");
    return {real(in[0].shape)};
}

int64_t cell_count(const Cells& cells, const Shape& x) {
    if (cells.groups > 0) {
        require(x.size() >= 2 && x[1] % cells.groups == 0, "{} channels do not divide into {} groups", x.size() < 2 ? 0 : x[1],
                cells.groups);
        return x[0] * cells.groups;
    }
    require(cells.axis > 0 && cells.axis < x.size(), "no dim {} to normalise from in {}", cells.axis, to_string(x));
    return product(x, 0, cells.axis);
}

Shape affine_shape(const Cells& cells, const Shape& x) { return cells.groups > 0 ? Shape{x[1]} : x.slice(cells.axis); }

Types infer_op(const CellStatsOp& op, const Types& in) {
    expect_count(in, 1);
    return {precise({2, cell_count(op.cells, in[0].shape)})};
}

Types infer_op(const CellNormalizeOp& op, const Types& in) {
    expect_count(in, 4);
    expect_shape(in[1], {2, cell_count(op.cells, in[0].shape)}, "the statistics");
    expect_shape(in[2], affine_shape(op.cells, in[0].shape), "gamma");
    expect_shape(in[3], affine_shape(op.cells, in[0].shape), "beta");
    return {real(in[0].shape)};
}

Types infer_op(const CellNormGradAffineOp& op, const Types& in) {
    expect_count(in, 3);
    expect_shape(in[2], {2, cell_count(op.cells, in[0].shape)}, "the statistics");
    return {precise(affine_shape(op.cells, in[0].shape)), precise(affine_shape(op.cells, in[0].shape))};
}

Types infer_op(const CellNormGradSumsOp& op, const Types& in) {
    expect_count(in, 4);
    return {precise({2, cell_count(op.cells, in[0].shape)})};
}

Types infer_op(const CellNormGradInputOp& op, const Types& in) {
    expect_count(in, 5);
    expect_shape(in[4], {2, cell_count(op.cells, in[0].shape)}, "the sums");
    return {real(in[0].shape)};
}

Types infer_op(const LrnOp& op, const Types& in) {
    expect_count(in, 1);
    expect_rank2(in);
    require(op.size > 0, "a window of {} channels", op.size);
    return {in[0]};
}

Types same_as_first(const Types& in, size_t count) {
    expect_count(in, count);
    return {real(in[0].shape)};
}

Types pair_of_one_shape(const Types& in) {
    expect_count(in, 2);
    expect_same(in);
    return {real(in[0].shape)};
}

Types infer_op(const LrnGradOp&, const Types& in) { return pair_of_one_shape(in); }
Types infer_op(const UnaryOp&, const Types& in) { return same_as_first(in, 1); }
Types infer_op(const UnaryGradOp&, const Types& in) { return pair_of_one_shape(in); }

Types infer_op(const PointwiseOp& op, const Types& in) {
    require(op.kind != Pointwise::Clip || op.a <= op.b, "clip to {}..{}, expected a lower limit that is not above the upper one", op.a,
            op.b);
    return same_as_first(in, 1);
}
Types infer_op(const PointwiseGradOp&, const Types& in) { return pair_of_one_shape(in); }

void expect_slope(const Types& in) {
    expect_rank2(in);
    require(in[1].shape == Shape{1} || in[1].shape == Shape{channels(in[0])}, "the slope is {}, expected 1 or {}", to_string(in[1].shape),
            channels(in[0]));
}

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

void expect_axis(int axis, const ValueType& t) { require(axis >= 0 && axis < t.shape.size(), "no dim {} in {}", axis, to_string(t.shape)); }

Types infer_op(const SoftmaxOp& op, const Types& in) {
    expect_count(in, 1);
    expect_axis(op.axis, in[0]);
    return {real(in[0].shape)};
}
Types infer_op(const SoftmaxGradOp& op, const Types& in) {
    auto out = pair_of_one_shape(in);
    expect_axis(op.axis, in[0]);
    return out;
}

Types infer_op(const LogSoftmaxOp& op, const Types& in) {
    expect_count(in, 1);
    expect_axis(op.axis, in[0]);
    return {real(in[0].shape)};
}
Types infer_op(const LogSoftmaxGradOp& op, const Types& in) {
    auto out = pair_of_one_shape(in);
    expect_axis(op.axis, in[0]);
    return out;
}

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

void expect_expands(const Shape& from, const Shape& to) {
    bool fits = from.size() == to.size();
    for (int i = 0; fits && i < from.size(); ++i) fits = from[i] == to[i] || from[i] == 1;
    require(fits, "{} does not expand to {}", to_string(from), to_string(to));
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

void expect_labels(const Types& in) {
    require(in[0].shape.size() >= 2, "the logits are {}, expected N x K ...", to_string(in[0].shape));
    expect_shape(in[1], join({in[0].shape[0]}, in[0].shape.slice(2)), "the target");
    require(in[1].element == Element::Index, "the target holds {} elements, expected class indices", name_of(in[1].element));
}

void expect_cross_entropy(const Types& in) {
    require(in.size() == 2 || in.size() == 4, "expected 2 or 4 inputs, found {}", in.size());
    expect_labels(in);
    if (in.size() == 4) {
        expect_shape(in[2], {channels(in[0])}, "the class weights");
        expect_shape(in[3], {1}, "the normaliser");
    }
}

Types infer_op(const CrossEntropyOp&, const Types& in) {
    expect_cross_entropy(in);
    return {scalar()};
}
Types infer_op(const CrossEntropyGradOp&, const Types& in) {
    expect_cross_entropy(in);
    return {real(in[0].shape)};
}
Types infer_op(const NllOp&, const Types& in) {
    expect_count(in, 3);
    expect_labels(in);
    expect_shape(in[2], {channels(in[0])}, "the class weights");
    return {real(in[1].shape), real(in[1].shape)};
}
Types infer_op(const NllGradOp&, const Types& in) {
    expect_count(in, 3);
    expect_shape(in[1], in[0].shape, "the target");
    require(in[2].shape.size() == 1, "the class weights are {}, expected one dim", to_string(in[2].shape));
    return {real(join({in[0].shape[0], in[2].shape[0]}, in[0].shape.slice(1)))};
}
Types infer_op(const TargetWeightOp&, const Types& in) {
    expect_count(in, 2);
    return {scalar()};
}
Types infer_op(const ErrorLossOp&, const Types& in) {
    pair_of_one_shape(in);
    return {scalar()};
}
Types infer_op(const ErrorLossGradOp&, const Types& in) { return pair_of_one_shape(in); }
Types infer_op(const CorrectOp&, const Types& in) {
    expect_count(in, 2);
    expect_labels(in);
    return {scalar()};
}

Types infer_op(const SquaredNormOp&, const Types& in) {
    expect_count(in, 1);
    return {scalar()};
}
Types infer_op(const ClipScaleOp&, const Types& in) {
    expect_count(in, 1);
    expect_shape(in[0], {1}, "the squared norm");
    return {scalar()};
}

void expect_hyper(const Types& in) {
    expect_shape(in[1], in[0].shape, "the gradient");
    expect_shape(in[2], {2}, "the hyperparameters");
}

Types infer_op(const UpdateOp& op, const Types& in) {
    const auto slots = static_cast<size_t>(slots_of(op.rule.rule));
    expect_count(in, 3 + slots + (op.rule.rule == Rule::Lars ? 2 : 0) + (op.clipped ? 1 : 0));
    expect_hyper(in);
    Types out{in[0]};
    for (size_t i = 0; i < slots; ++i) {
        expect_shape(in[3 + i], in[0].shape, "an optimizer slot");
        out.push_back(in[0]);
    }
    return out;
}
Types infer_op(const LambDirectionOp& op, const Types& in) {
    expect_count(in, op.clipped ? 6 : 5);
    expect_hyper(in);
    return {in[0], in[0], in[0]};
}
Types infer_op(const LambApplyOp&, const Types& in) {
    expect_count(in, 5);
    expect_hyper(in);
    return {in[0]};
}

int64_t elements_of(const std::vector<Box>& boxes) {
    int64_t total = 0;
    for (const Box& box : boxes) total += numel(box.shape);
    return total;
}

Types infer_op(const PackOp& op, const Types& in) {
    expect_count(in, 1);
    for (const Box& box : op.boxes)
        require(contains(Box::whole(in[0].shape), box), "box {} is not inside {}", to_string(box), to_string(in[0].shape));
    return {{{elements_of(op.boxes)}, in[0].element}};
}
// The shape of the result is not the op's to know: only the compiler makes these, and it does.
Types infer_op(const UnpackOp&, const Types&) { fail("unpack has no shape of its own"); }
Types infer_op(const MergeStatsOp& op, const Types& in) {
    expect_count(in, 1);
    require(in[0].shape.size() == 3 && in[0].shape[1] == 2 && in[0].shape[0] == static_cast<int64_t>(op.counts.size()),
            "{} statistics of {} parts", to_string(in[0].shape), op.counts.size());
    return {precise(in[0].shape.slice(1))};
}

}  // namespace

std::vector<ValueType> infer(const Op& op, const std::vector<ValueType>& inputs) {
    return std::visit([&](const auto& o) { return infer_op(o, inputs); }, op);
}

}  // namespace convoy
