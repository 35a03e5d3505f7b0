#include "kernels/op_cases.h"

#include <algorithm>

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

namespace {

bool turned_over_by_rounding(const Op& op) {
    if (const auto* p = std::get_if<PointwiseOp>(&op)) return p->kind >= Pointwise::Sign || p->kind == Pointwise::ThresholdedRelu;
    return std::holds_alternative<MaxPoolOp>(op) || std::holds_alternative<CorrectOp>(op);
}

// Whether this input of an op is a state, or lies beside one.
bool is_kept(const Op& op, size_t input) {
    if (std::holds_alternative<RunningUpdateOp>(op) || std::holds_alternative<RunningStatsOp>(op)) return input < 2;
    const bool updates =
        std::holds_alternative<UpdateOp>(op) || std::holds_alternative<LambDirectionOp>(op) || std::holds_alternative<LambApplyOp>(op);
    return updates && input != 1;
}

}  // namespace

OpCase OpCase::mixed(Draw& draw) const {
    OpCase c = *this;
    if (std::any_of(steps.begin(), steps.end(), [](const Step& s) { return std::holds_alternative<UnpackOp>(s.op); }))
        return c;  // it has no shape of its own
    for (const Step& s : steps)
        for (size_t i = 0; i < s.inputs.size(); ++i) {
            const auto v = static_cast<size_t>(s.inputs[i]);
            Element& element = c.values[v].element;
            const bool floating = element == Element::Real || element == Element::Precise;
            if (v >= inputs.size() || !floating || turned_over_by_rounding(s.op) || is_kept(s.op, i) || draw.coin()) continue;
            element = element == Element::Real ? Element::Precise : Element::Real;
            c.inputs[v] = c.inputs[v].to(DType::bf16).to(DType::f64);  // the same number in either kind
        }
    for (const Step& s : steps) {
        std::vector<ValueType> types;
        for (const int v : s.inputs) types.push_back(c.values[static_cast<size_t>(v)]);
        const auto made = infer(s.op, types);
        for (size_t o = 0; o < made.size(); ++o) c.values[static_cast<size_t>(s.outputs[o])] = made[o];
    }
    return c;
}

std::vector<NamedCase> op_cases() {
    std::vector<NamedCase> all;
    for (const auto& family : {layer_cases(), norm_cases(), elementwise_cases(), training_cases()})
        all.insert(all.end(), family.begin(), family.end());
    return all;
}

}  // namespace convoy::op_testing
