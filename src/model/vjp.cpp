#include "model/vjp.h"

#include "base/error.h"

namespace convoy {

namespace {

using C = VjpContext;

Dims spatial(const Shape& shape) { return shape.slice(2); }

void vjp(const ConvOp& op, C& c) {
    if (c.needed[0]) c.dx[0] = c.add(ConvGradInputOp{op.window, op.groups, spatial(c.shape(0))}, {c.dy[0], c.in(1)});
    if (c.needed[1]) c.dx[1] = c.add(ConvGradWeightOp{op.window, op.groups}, {c.in(0), c.dy[0]});
}

// The transposed convolution: its input is a dy, its output a dx, so the two swap roles.
void vjp(const ConvGradInputOp& op, C& c) {
    if (c.needed[0]) c.dx[0] = c.add(ConvOp{op.window, op.groups}, {c.dy[0], c.in(1)});
    if (c.needed[1]) c.dx[1] = c.add(ConvGradWeightOp{op.window, op.groups}, {c.dy[0], c.in(0)});
}

void vjp(const LinearOp&, C& c) {
    if (c.needed[0]) c.dx[0] = c.add(LinearGradInputOp{}, {c.dy[0], c.in(1)});
    if (c.needed[1]) c.dx[1] = c.add(LinearGradWeightOp{}, {c.in(0), c.dy[0]});
}

void vjp(const LocalConvOp& op, C& c) {
    if (c.needed[0]) c.dx[0] = c.add(LocalConvGradInputOp{op.window, spatial(c.shape(0))}, {c.dy[0], c.in(1)});
    if (c.needed[1]) c.dx[1] = c.add(LocalConvGradWeightOp{op.window}, {c.in(0), c.dy[0]});
}

void vjp(const BiasOp& op, C& c) {
    c.dx[0] = c.dy[0];
    if (c.needed[1]) c.dx[1] = c.add(BiasGradOp{op.axis, c.shape(1).size()}, {c.dy[0]});
}

void vjp(const MaxPoolOp& op, C& c) { c.dx[0] = c.add(MaxPoolGradOp{op.window, spatial(c.shape(0))}, {c.dy[0], c.node.outputs[1]}); }

void vjp(const AveragePoolOp& op, C& c) {
    c.dx[0] = c.add(AveragePoolGradOp{op.window, op.count_padding, op.overflow, spatial(c.shape(0))}, {c.dy[0]});
}

void vjp(const AdaptivePoolOp&, C& c) { c.dx[0] = c.add(AdaptivePoolGradOp{spatial(c.shape(0))}, {c.dy[0]}); }

void vjp(const UpsampleOp& op, C& c) { c.dx[0] = c.add(UpsampleGradOp{op.mode, spatial(c.shape(0)), op.align_corners}, {c.dy[0]}); }

// Whether `stats` are those of `x` itself: then they move with x, and the gradient takes that into account.
template <class StatsOp>
bool stats_follow(const C& c, ValueId stats, ValueId x) {
    const NodeId producer = c.graph.value(stats).producer;
    if (producer == kNone || !std::holds_alternative<StatsOp>(c.graph.node(producer).op)) return false;
    CONVOY_CHECK(c.graph.node(producer).inputs[0] == x, "\"{}\" normalises with the statistics of another value", c.node.layer);
    return true;
}

void vjp(const BatchNormalizeOp& op, C& c) {
    const bool follows = stats_follow<BatchStatsOp>(c, c.in(1), c.in(0));
    std::vector<ValueId> sums;  // dgamma, dbeta
    if (c.needed[2] || c.needed[3] || (c.needed[0] && follows))
        sums = c.graph.add(BatchNormGradSumsOp{op.epsilon}, {c.in(0), c.dy[0], c.in(1)}, c.node.layer);
    if (c.needed[2]) c.dx[2] = sums[0];
    if (c.needed[3]) c.dx[3] = sums[1];
    if (!c.needed[0]) return;
    const int64_t count = numel(c.shape(0)) / c.shape(0)[1];
    c.dx[0] = follows ? c.add(BatchNormGradInputOp{op.epsilon, count}, {c.in(0), c.dy[0], c.in(1), c.in(2), sums[0], sums[1]})
                      : c.add(BatchNormFixedGradInputOp{op.epsilon}, {c.dy[0], c.in(1), c.in(2)});
}

void vjp(const CellNormalizeOp& op, C& c) {
    CONVOY_CHECK(stats_follow<CellStatsOp>(c, c.in(1), c.in(0)), "\"{}\" normalises with statistics that are not of its input",
                 c.node.layer);
    if (c.needed[2] || c.needed[3]) {
        const auto affine = c.graph.add(CellNormGradAffineOp{op.cells, op.epsilon}, {c.in(0), c.dy[0], c.in(1)}, c.node.layer);
        c.dx[2] = affine[0];
        c.dx[3] = affine[1];
    }
    if (c.needed[0]) {
        const ValueId sums = c.add(CellNormGradSumsOp{op.cells, op.epsilon}, {c.in(0), c.dy[0], c.in(1), c.in(2)});
        c.dx[0] = c.add(CellNormGradInputOp{op.cells, op.epsilon}, {c.in(0), c.dy[0], c.in(1), c.in(2), sums});
    }
}

// Statistics get no gradient of their own: the op that normalises accounts for them.
void vjp(const BatchStatsOp&, C&) {}
void vjp(const CellStatsOp&, C&) {}
void vjp(const RunningStatsOp&, C&) {}
void vjp(const RunningUpdateOp&, C&) {}

void vjp(const LrnOp& op, C& c) { c.dx[0] = c.add(LrnGradOp{op.size, op.alpha, op.beta, op.k}, {c.in(0), c.dy[0]}); }

void vjp(const UnaryOp& op, C& c) {
    c.dx[0] = c.add(UnaryGradOp{op.kind, op.alpha}, {grad_reads_output(op.kind) ? c.node.outputs[0] : c.in(0), c.dy[0]});
}

void vjp(const PointwiseOp& op, C& c) { c.dx[0] = c.add(PointwiseGradOp{op.kind, op.a, op.b}, {c.in(0), c.dy[0]}); }

void vjp(const PReluOp&, C& c) {
    if (c.needed[0]) c.dx[0] = c.add(PReluGradInputOp{}, {c.in(0), c.in(1), c.dy[0]});
    if (c.needed[1]) c.dx[1] = c.add(PReluGradSlopeOp{c.shape(1)[0]}, {c.in(0), c.dy[0]});
}

void vjp(const SoftmaxOp& op, C& c) { c.dx[0] = c.add(SoftmaxGradOp{op.axis}, {c.node.outputs[0], c.dy[0]}); }
void vjp(const LogSoftmaxOp& op, C& c) { c.dx[0] = c.add(LogSoftmaxGradOp{op.axis}, {c.node.outputs[0], c.dy[0]}); }
// The weights are numbers that somebody chose: they get no gradient, nor does what they add up to.
void vjp(const NllOp& op, C& c) {
    if (c.needed[0] && c.dy[0] != kNone) c.dx[0] = c.add(NllGradOp{op.ignored}, {c.dy[0], c.in(1), c.in(2)});
}
void vjp(const MaxIndexOp&, C&) {}
void vjp(const DropoutOp& op, C& c) { c.dx[0] = c.add(op, {c.dy[0]}); }

void vjp(const AddOp&, C& c) {
    for (auto& d : c.dx) d = c.dy[0];
}

void vjp(const MulOp&, C& c) {
    for (const size_t i : {0u, 1u})
        if (c.needed[i]) c.dx[i] = c.add(MulOp{}, {c.dy[0], c.in(1 - i)});
}

void vjp(const ScaleOp& op, C& c) { c.dx[0] = c.add(op, {c.dy[0]}); }
void vjp(const ExpandOp&, C& c) { c.dx[0] = c.add(SumToOp{c.shape(0)}, {c.dy[0]}); }
void vjp(const SumToOp&, C& c) { c.dx[0] = c.add(ExpandOp{c.shape(0)}, {c.dy[0]}); }

void vjp(const ConcatOp& op, C& c) {
    Dims start = Dims::filled(c.shape(0).size(), 0);
    for (size_t i = 0; i < c.dx.size(); ++i) {
        if (c.needed[i]) c.dx[i] = c.add(SliceOp{start, c.shape(i)}, {c.dy[0]});
        start[op.axis] += c.shape(i)[op.axis];
    }
}

void vjp(const SliceOp& op, C& c) {
    Dims hi = c.shape(0);
    for (int i = 0; i < hi.size(); ++i) hi[i] -= op.start[i] + op.size[i];
    c.dx[0] = c.add(PadOp{op.start, hi, 0}, {c.dy[0]});
}

void vjp(const PadOp& op, C& c) {
    PadOp crop{op.lo, op.hi, 0};
    for (auto& v : crop.lo) v = -v;
    for (auto& v : crop.hi) v = -v;
    c.dx[0] = c.add(crop, {c.dy[0]});
}

void vjp(const ReshapeOp&, C& c) { c.dx[0] = c.add(ReshapeOp{c.shape(0)}, {c.dy[0]}); }

void vjp(const TransposeOp& op, C& c) {
    TransposeOp back{op.order};
    for (int i = 0; i < op.order.size(); ++i) back.order[static_cast<int>(op.order[i])] = i;
    c.dx[0] = c.add(back, {c.dy[0]});
}

template <class Other>
void vjp(const Other&, C& c) {
    CONVOY_CHECK(false, "{} \"{}\" has no gradient", name_of(c.node.op), c.node.layer);
}

}  // namespace

void apply_vjp(VjpContext& context) {
    std::visit([&](const auto& op) { vjp(op, context); }, context.node.op);
}

}  // namespace convoy
