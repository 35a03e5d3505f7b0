#include "kernels/op_cases.h"

#include "kernels/op_cases/families.h"

namespace convoy::op_testing {

int OpCase::input(Element element, Tensor tensor) {
    values.push_back({tensor.shape(), element});
    inputs.push_back(std::move(tensor));
    return static_cast<int>(values.size()) - 1;
}

int OpCase::step(const Op& op, std::vector<int> from) {
    std::vector<ValueType> types;
    for (const int v : from) types.push_back(values[static_cast<size_t>(v)]);
    Step s{op, std::move(from), {}};
    for (const ValueType& type : infer(op, types)) {
        s.outputs.push_back(static_cast<int>(values.size()));
        values.push_back(type);
    }
    const int first = s.outputs[0];
    steps.push_back(std::move(s));
    return first;
}

Problem OpCase::problem(const Target& target, DType compute) const {
    std::vector<int> number(values.size(), -1);
    ProblemBuilder b;
    const auto stored = [&](size_t v) { return target.storage(values[v].element, compute); };
    for (size_t v = 0; v < inputs.size(); ++v) number[v] = b.input(values[v].shape, stored(v));
    for (const int v : outputs) {
        const auto at = static_cast<size_t>(v);
        number[at] = b.output(values[at].shape, stored(at));
    }
    for (size_t v = inputs.size(); v < values.size(); ++v)
        if (number[v] < 0) number[v] = b.inside(values[v].shape, stored(v));
    const auto numbers = [&](const std::vector<int>& of) {
        std::vector<int> result;
        for (const int v : of) result.push_back(number[static_cast<size_t>(v)]);
        return result;
    };
    for (const Step& s : steps) b.step(s.op, numbers(s.inputs), numbers(s.outputs));
    b.problem.compute = compute;
    return b.problem;
}

std::vector<NamedCase> op_cases() {
    std::vector<NamedCase> all;
    for (const auto& family : {layer_cases(), norm_cases(), elementwise_cases(), training_cases()})
        all.insert(all.end(), family.begin(), family.end());
    return all;
}

}  // namespace convoy::op_testing
