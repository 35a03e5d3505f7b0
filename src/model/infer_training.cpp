// Shape inference of what a step of training has beside its layers: losses, what is counted beside them, and updates.
#include "base/error.h"
#include "model/infer_rules.h"

namespace convoy::infer_rules {

namespace {

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

void expect_hyper(const Types& in) {
    expect_shape(in[1], in[0].shape, "the gradient");
    expect_shape(in[2], {2}, "the hyperparameters");
}

}  // namespace

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

}  // namespace convoy::infer_rules
