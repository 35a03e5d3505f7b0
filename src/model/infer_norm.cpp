// Shape inference of normalisation, and of what batch norm keeps from step to step.
#include "base/error.h"
#include "model/infer_rules.h"

namespace convoy::infer_rules {

namespace {

void expect_channels(const Types& in, size_t input, const char* what) { expect_shape(in[input], {channels(in[0])}, what); }
void expect_stats(const Types& in, size_t input) { expect_shape(in[input], {2, channels(in[0])}, "the statistics"); }

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

}  // namespace

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

Types infer_op(const LrnGradOp&, const Types& in) { return pair_of_one_shape(in); }

Types infer_op(const MergeStatsOp& op, const Types& in) {
    expect_count(in, 1);
    require(in[0].shape.size() == 3 && in[0].shape[1] == 2 && in[0].shape[0] == static_cast<int64_t>(op.counts.size()),
            "{} statistics of {} parts", to_string(in[0].shape), op.counts.size());
    return {precise(in[0].shape.slice(1))};
}

}  // namespace convoy::infer_rules
