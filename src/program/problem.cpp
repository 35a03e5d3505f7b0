#include "program/problem.h"

#include "model/cost.h"

#include <utility>

namespace convoy {

Problem Problem::single(const Op& op, const std::vector<TensorDesc>& inputs, const std::vector<TensorDesc>& outputs, DType compute) {
    Problem problem;
    problem.inputs = static_cast<int>(inputs.size());
    problem.outputs = static_cast<int>(outputs.size());
    problem.compute = compute;
    ProblemStep step{op, {}, {}};
    for (const auto& t : inputs) {
        step.inputs.push_back(static_cast<int>(problem.tensors.size()));
        problem.tensors.push_back(t);
    }
    for (const auto& t : outputs) {
        step.outputs.push_back(static_cast<int>(problem.tensors.size()));
        problem.tensors.push_back(t);
    }
    problem.steps.push_back(std::move(step));
    return problem;
}

std::string text_of(const Problem& problem) {
    std::string text;
    const size_t count = problem.steps.size();
    for (size_t i = 0, next = 0; i < count; i = next) {
        const std::string op = text_of(problem.steps[i].op);
        for (next = i + 1; next < count && text_of(problem.steps[next].op) == op;) ++next;
        text += (text.empty() ? "" : " + ") + op;
        if (next - i > 1) text += " x" + std::to_string(next - i);
    }
    return text;
}

double work_of(const Problem& problem) {
    double total = 0;
    for (const auto& step : problem.steps) {
        std::vector<ValueType> inputs, outputs;
        for (const int t : step.inputs) inputs.push_back({problem.tensors[static_cast<size_t>(t)].shape});
        for (const int t : step.outputs) outputs.push_back({problem.tensors[static_cast<size_t>(t)].shape});
        total += cost_of(step.op, inputs, outputs).work;
    }
    return total;
}

}  // namespace convoy
