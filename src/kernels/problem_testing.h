// For tests of backends: building problems, and what the reference makes of them in float64, step by step on the same inputs.
#pragma once

#include <cmath>
#include <vector>

#include "kernels/reference/reference.h"
#include "kernels/reference/test_support.h"

namespace convoy::op_testing {

using ref::testing::Draw;

// Builds a problem; inputs first, then outputs, then what stays inside.
struct ProblemBuilder {
    Problem problem;

    int input(const Shape& shape, DType type = DType::f32) {
        ++problem.inputs;
        return add(TensorDesc::whole(shape, type));
    }
    int output(const Shape& shape, DType type = DType::f32) {
        ++problem.outputs;
        return add(TensorDesc::whole(shape, type));
    }
    int inside(const Shape& shape, DType type = DType::f32) { return add(TensorDesc::whole(shape, type)); }
    ProblemBuilder& step(const Op& op, std::vector<int> inputs, std::vector<int> outputs) {
        problem.steps.push_back({op, std::move(inputs), std::move(outputs)});
        return *this;
    }

  private:
    int add(const TensorDesc& desc) {
        problem.tensors.push_back(desc);
        return static_cast<int>(problem.tensors.size()) - 1;
    }
};

// A floating tensor rounded to the type it is stored in, still as f64: what both sides compute from.
inline Tensor rounded(const Tensor& t, DType stored = DType::f32) { return is_floating(t.dtype()) ? t.to(stored).to(DType::f64) : t; }

// All outputs of the problem by the reference in f64.
inline std::vector<Tensor> reference_outputs(const Problem& problem, const std::vector<Tensor>& inputs, const StepContext& context) {
    std::vector<Tensor> tensors;
    std::vector<TensorDesc> descs;
    for (size_t t = 0; t < problem.tensors.size(); ++t) {
        TensorDesc desc = problem.tensors[t];
        const DType stored = desc.dtype;
        if (is_floating(desc.dtype)) desc.dtype = DType::f64;
        tensors.push_back(t < inputs.size() ? rounded(inputs[t], stored) : Tensor(desc.shape, desc.dtype));
        descs.push_back(desc);
    }
    for (const auto& step : problem.steps) {
        std::vector<Operand> in, out;
        std::vector<TensorDesc> in_descs, out_descs;
        const auto bind = [&](const std::vector<int>& numbers, std::vector<Operand>& operands, std::vector<TensorDesc>& of) {
            for (const int number : numbers) {
                const auto t = static_cast<size_t>(number);
                operands.push_back({tensors[t].data(), descs[t], Layout::plain()});
                of.push_back(descs[t]);
            }
        };
        bind(step.inputs, in, in_descs);
        bind(step.outputs, out, out_descs);
        const Buffer workspace(reference_workspace_bytes(step.op, in_descs, out_descs, 1));
        run_reference(step.op, in, out, workspace.data(), 1, context);
    }
    return {tensors.begin() + problem.inputs, tensors.begin() + problem.inputs + problem.outputs};
}

// Distance of all elements, relative to the norm; those that are equal, as infinities can be, are at no distance. The norm counts as if elements were no
// smaller than `usual`, because sums that happen to cancel are no less exact for that.
inline double distance(const Tensor& found, const Tensor& expected, double usual = 0) {
    double difference = 0, norm = 0;
    for (int64_t i = 0; i < found.numel(); ++i) {
        const double a = element(found, i), b = element(expected, i);
        if (a == b) {
            norm += std::isfinite(b) ? b * b : 0;
            continue;
        }
        difference += (a - b) * (a - b);
        norm += b * b;
    }
    return difference == 0
               ? 0
               : std::sqrt(difference) / std::max({std::sqrt(norm), usual * std::sqrt(static_cast<double>(found.numel())), 1e-30});
}

}  // namespace convoy::op_testing
