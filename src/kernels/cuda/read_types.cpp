#include "kernels/cuda/read_types.h"

#include <algorithm>
#include <initializer_list>

#include "program/storage.h"

namespace convoy::cuda {

namespace {

// How a step reads an input.
enum class Read : uint8_t {
    Stored,    // as it is: what is only moved, or stands alone
    AsOutput,  // like the step's result
    Real,
    Precise
};

struct Reading {
    size_t input = 0;

    // Real, but for these.
    Read but(std::initializer_list<size_t> precise) const {
        return std::find(precise.begin(), precise.end(), input) == precise.end() ? Read::Real : Read::Precise;
    }

    template <class AnyOp>
    Read operator()(const AnyOp&) const {
        return Read::Real;
    }
    Read operator()(const LocalConvOp&) const { return but({1}); }
    Read operator()(const LocalConvGradInputOp&) const { return but({1}); }
    Read operator()(const BiasOp&) const { return input == 1 ? Read::Precise : Read::AsOutput; }
    Read operator()(const RunningStatsOp&) const { return Read::Precise; }
    Read operator()(const RunningUpdateOp&) const { return Read::Precise; }
    Read operator()(const BatchNormalizeOp&) const { return but({1, 2, 3}); }
    Read operator()(const BatchNormGradSumsOp&) const { return but({2}); }
    Read operator()(const BatchNormGradInputOp&) const { return but({2, 3, 4, 5}); }
    Read operator()(const BatchNormFixedGradInputOp&) const { return but({1, 2}); }
    Read operator()(const CellNormalizeOp&) const { return but({1, 2, 3}); }
    Read operator()(const CellNormGradAffineOp&) const { return but({2}); }
    Read operator()(const CellNormGradSumsOp&) const { return but({2, 3}); }
    Read operator()(const CellNormGradInputOp&) const { return but({2, 3, 4}); }
    Read operator()(const LrnOp&) const { return Read::AsOutput; }
    Read operator()(const PReluOp&) const { return but({1}); }
    Read operator()(const PReluGradInputOp&) const { return but({1}); }
    Read operator()(const AddOp&) const { return Read::AsOutput; }
    Read operator()(const MulOp&) const { return Read::AsOutput; }
    Read operator()(const ScaleOp&) const { return Read::AsOutput; }
    Read operator()(const CrossEntropyOp&) const { return but({2, 3}); }
    Read operator()(const CrossEntropyGradOp&) const { return but({2, 3}); }
    Read operator()(const NllOp&) const { return but({2}); }
    Read operator()(const NllGradOp&) const { return but({2}); }
    Read operator()(const TargetWeightOp&) const { return Read::Precise; }
    Read operator()(const ClipScaleOp&) const { return Read::Precise; }
    Read operator()(const UpdateOp&) const { return Read::Precise; }
    Read operator()(const LambDirectionOp&) const { return Read::Precise; }
    Read operator()(const LambApplyOp&) const { return Read::Precise; }
    Read operator()(const MergeStatsOp&) const { return Read::Precise; }
    // Copies convert.
    Read operator()(const SquaredNormOp&) const { return Read::Stored; }
    Read operator()(const ExpandOp&) const { return Read::Stored; }
    Read operator()(const SumToOp&) const { return Read::Stored; }
    Read operator()(const ConcatOp&) const { return Read::Stored; }
    Read operator()(const SliceOp&) const { return Read::Stored; }
    Read operator()(const PadOp&) const { return Read::Stored; }
    Read operator()(const ReshapeOp&) const { return Read::Stored; }
    Read operator()(const TransposeOp&) const { return Read::Stored; }
    Read operator()(const PackOp&) const { return Read::Stored; }
    Read operator()(const UnpackOp&) const { return Read::Stored; }
    // Direct kernels take weights of either type.
    Read operator()(const ConvOp&) const { return input == 1 ? Read::Stored : Read::Real; }
    Read operator()(const ConvGradInputOp&) const { return input == 1 ? Read::Stored : Read::Real; }
};

}  // namespace

std::vector<DType> read_types(const Problem& problem) {
    std::vector<DType> types;
    for (int t = 0; t < problem.inputs; ++t) types.push_back(problem.tensors[static_cast<size_t>(t)].dtype);
    std::vector<bool> settled(types.size());
    for (const ProblemStep& step : problem.steps)
        for (size_t i = 0; i < step.inputs.size(); ++i) {
            const auto t = static_cast<size_t>(step.inputs[i]);
            if (t >= types.size() || settled[t] || !is_floating(types[t])) continue;
            settled[t] = true;
            switch (std::visit(Reading{i}, step.op)) {
                case Read::Stored: break;
                case Read::AsOutput: types[t] = problem.tensors[static_cast<size_t>(step.outputs[0])].dtype; break;
                case Read::Real: types[t] = stored_as(Element::Real, problem.compute); break;
                case Read::Precise: types[t] = stored_as(Element::Precise, problem.compute); break;
            }
        }
    return types;
}

bool is_of_one_type(const Problem& problem) {
    const DType real = stored_as(Element::Real, problem.compute);
    return problem.steps.size() == 1 || std::none_of(problem.steps.begin(), problem.steps.end(), [&](const ProblemStep& step) {
               const bool follows = std::holds_alternative<AddOp>(step.op) || std::holds_alternative<BiasOp>(step.op);
               return follows && problem.tensors[static_cast<size_t>(step.outputs[0])].dtype != real;
           });
}

}  // namespace convoy::cuda
