#include "plan/roofline_target.h"

#include <algorithm>

#include "base/error.h"
#include "program/in_place.h"
#include "program/storage.h"

namespace convoy {

namespace {

template <class... Ops>
bool is_any(const Op& op) {
    return (std::holds_alternative<Ops>(op) || ...);
}

bool all_updates(const Problem& problem) {
    return std::all_of(problem.steps.begin(), problem.steps.end(), [](const ProblemStep& s) { return is_any<UpdateOp>(s.op); });
}

// What libraries for GPUs and the own kernels of backends do in one pass.
bool fuses(const Problem& problem) {
    const auto& steps = problem.steps;
    if (steps.size() == 1 || all_updates(problem)) return true;
    const auto rest_are = [&](size_t from, auto&& good) {
        return std::all_of(steps.begin() + static_cast<std::ptrdiff_t>(from), steps.end(), good);
    };
    if (is_any<ConvOp, LinearOp>(steps[0].op)) return rest_are(1, [](const ProblemStep& s) { return is_any<BiasOp, UnaryOp>(s.op); });
    if (is_any<ConvGradWeightOp, LinearGradWeightOp>(steps[0].op)) return steps.size() == 2 && is_any<BiasGradOp>(steps[1].op);
    const Op& last = steps.back().op;
    if (is_any<BatchNormGradSumsOp, BatchNormGradInputOp, BiasGradOp>(last))
        return std::all_of(steps.begin(), steps.end() - 1,
                           [](const ProblemStep& s) { return is_any<BatchNormalizeOp, UnaryGradOp>(s.op); });
    if (is_any<MaxPoolGradOp>(last)) return steps.size() == 2 && is_any<UnaryGradOp>(steps[0].op);
    if (is_any<BatchNormalizeOp>(steps[0].op)) return rest_are(1, [](const ProblemStep& s) { return is_any<AddOp, UnaryOp>(s.op); });
    return false;
}

}  // namespace

DType RooflineTarget::storage(Element element, DType compute) const {
    require(is_floating(compute), "a device computes in a floating type, not in {}", name_of(compute));
    return stored_as(element, compute);
}

std::vector<Candidate> RooflineTarget::candidates(const Problem& problem) const {
    if (!fuses(problem) || (device_.joins && problem.steps.size() > 1 && all_updates(problem))) return {};
    Candidate candidate{.algorithm = "roofline"};
    candidate.inputs.resize(static_cast<size_t>(problem.inputs));
    candidate.outputs.resize(static_cast<size_t>(problem.outputs));
    double bytes = 0;
    for (int t = 0; t < problem.inputs + problem.outputs; ++t) {
        const TensorDesc& desc = problem.tensors[static_cast<size_t>(t)];
        bytes += static_cast<double>(numel(desc.shape) * size_of(desc.dtype));
    }
    candidate.seconds = device_.launch_seconds + bytes / device_.memory_bandwidth;
    for (const ProblemStep& step : problem.steps)
        for (const auto& [output, input] : in_place_of(step.op, static_cast<int>(step.inputs.size()))) {
            const int out = step.outputs[static_cast<size_t>(output)] - problem.inputs, in = step.inputs[static_cast<size_t>(input)];
            if (out >= 0 && out < problem.outputs && in < problem.inputs) candidate.in_place.emplace_back(out, in);
        }
    return {candidate};
}

}  // namespace convoy
