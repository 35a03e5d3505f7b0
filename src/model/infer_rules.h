// The rules of shape inference, one for each op, and what they share: how they say what they expected. Internal to infer*.cpp. An error names neither op nor
// layer: whoever builds the graph adds those.
#pragma once

#include <vector>

#include "model/op.h"

namespace convoy::infer_rules {

using Types = std::vector<ValueType>;

// --- Expectations ---

void expect_count(const Types& in, size_t least, size_t most);
inline void expect_count(const Types& in, size_t count) { expect_count(in, count, count); }
void expect_shape(const ValueType& type, const Shape& shape, const char* what);
// All inputs of one shape.
void expect_same(const Types& in);
// The first input is [N, C, ..].
void expect_rank2(const Types& in);

// --- Types of outputs ---

inline ValueType real(const Shape& shape) { return {shape, Element::Real}; }
inline ValueType precise(const Shape& shape) { return {shape, Element::Precise}; }
inline ValueType scalar() { return precise({1}); }
inline int64_t channels(const ValueType& t) { return t.shape[1]; }
// Of an op with two inputs of one shape, and an output like them.
Types pair_of_one_shape(const Types& in);

// --- Rules ---

// infer_layers.cpp
Types infer_op(const ConvOp& op, const Types& in);
Types infer_op(const ConvGradInputOp& op, const Types& in);
Types infer_op(const ConvGradWeightOp& op, const Types& in);
Types infer_op(const LinearOp& op, const Types& in);
Types infer_op(const LinearGradInputOp& op, const Types& in);
Types infer_op(const LinearGradWeightOp& op, const Types& in);
Types infer_op(const LocalConvOp& op, const Types& in);
Types infer_op(const LocalConvGradInputOp& op, const Types& in);
Types infer_op(const LocalConvGradWeightOp& op, const Types& in);
Types infer_op(const BiasOp& op, const Types& in);
Types infer_op(const BiasGradOp& op, const Types& in);
Types infer_op(const MaxPoolOp& op, const Types& in);
Types infer_op(const MaxPoolGradOp& op, const Types& in);
Types infer_op(const MaxIndexOp& op, const Types& in);
Types infer_op(const AveragePoolOp& op, const Types& in);
Types infer_op(const AveragePoolGradOp& op, const Types& in);
Types infer_op(const AdaptivePoolOp& op, const Types& in);
Types infer_op(const AdaptivePoolGradOp& op, const Types& in);
Types infer_op(const UpsampleOp& op, const Types& in);
Types infer_op(const UpsampleGradOp& op, const Types& in);

// infer_norm.cpp
Types infer_op(const BatchStatsOp& op, const Types& in);
Types infer_op(const RunningStatsOp& op, const Types& in);
Types infer_op(const RunningUpdateOp& op, const Types& in);
Types infer_op(const BatchNormalizeOp& op, const Types& in);
Types infer_op(const BatchNormGradSumsOp& op, const Types& in);
Types infer_op(const BatchNormGradInputOp& op, const Types& in);
Types infer_op(const BatchNormFixedGradInputOp& op, const Types& in);
Types infer_op(const CellStatsOp& op, const Types& in);
Types infer_op(const CellNormalizeOp& op, const Types& in);
Types infer_op(const CellNormGradAffineOp& op, const Types& in);
Types infer_op(const CellNormGradSumsOp& op, const Types& in);
Types infer_op(const CellNormGradInputOp& op, const Types& in);
Types infer_op(const LrnOp& op, const Types& in);
Types infer_op(const LrnGradOp& op, const Types& in);
Types infer_op(const MergeStatsOp& op, const Types& in);

// infer_elementwise.cpp
Types infer_op(const UnaryOp& op, const Types& in);
Types infer_op(const UnaryGradOp& op, const Types& in);
Types infer_op(const PointwiseOp& op, const Types& in);
Types infer_op(const PointwiseGradOp& op, const Types& in);
Types infer_op(const PReluOp& op, const Types& in);
Types infer_op(const PReluGradInputOp& op, const Types& in);
Types infer_op(const PReluGradSlopeOp& op, const Types& in);
Types infer_op(const SoftmaxOp& op, const Types& in);
Types infer_op(const SoftmaxGradOp& op, const Types& in);
Types infer_op(const LogSoftmaxOp& op, const Types& in);
Types infer_op(const LogSoftmaxGradOp& op, const Types& in);
Types infer_op(const DropoutOp& op, const Types& in);
Types infer_op(const AddOp& op, const Types& in);
Types infer_op(const MulOp& op, const Types& in);
Types infer_op(const ScaleOp& op, const Types& in);
Types infer_op(const ExpandOp& op, const Types& in);
Types infer_op(const SumToOp& op, const Types& in);
Types infer_op(const ConcatOp& op, const Types& in);
Types infer_op(const SliceOp& op, const Types& in);
Types infer_op(const PadOp& op, const Types& in);
Types infer_op(const ReshapeOp& op, const Types& in);
Types infer_op(const TransposeOp& op, const Types& in);
Types infer_op(const PackOp& op, const Types& in);
Types infer_op(const UnpackOp& op, const Types& in);

// infer_training.cpp
Types infer_op(const CrossEntropyOp& op, const Types& in);
Types infer_op(const CrossEntropyGradOp& op, const Types& in);
Types infer_op(const NllOp& op, const Types& in);
Types infer_op(const NllGradOp& op, const Types& in);
Types infer_op(const TargetWeightOp& op, const Types& in);
Types infer_op(const ErrorLossOp& op, const Types& in);
Types infer_op(const ErrorLossGradOp& op, const Types& in);
Types infer_op(const CorrectOp& op, const Types& in);
Types infer_op(const SquaredNormOp& op, const Types& in);
Types infer_op(const ClipScaleOp& op, const Types& in);
Types infer_op(const UpdateOp& op, const Types& in);
Types infer_op(const LambDirectionOp& op, const Types& in);
Types infer_op(const LambApplyOp& op, const Types& in);

}  // namespace convoy::infer_rules
