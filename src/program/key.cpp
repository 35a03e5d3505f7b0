#include "program/key.h"

#include <fmt/format.h>

namespace convoy {

namespace {

std::string word(const Dims& dims) { return dims.empty() ? "-" : to_string(dims); }
std::string word(int64_t number) { return std::to_string(number); }
std::string word(int number) { return std::to_string(number); }
std::string word(bool flag) { return flag ? "1" : "0"; }
std::string word(const Box& box) { return word(box.origin) + "+" + word(box.shape); }
std::string word(const Window& w) {
    return fmt::format("k{} s{} d{} p{} q{}", word(w.kernel), word(w.stride), word(w.dilation), word(w.pad_lo), word(w.pad_hi));
}
std::string word(const Cells& cells) { return fmt::format("{}/{}", cells.groups, cells.axis); }
std::string word(const UpdateRule& rule) { return std::string(name_of(rule.rule)); }
template <class E>
requires std::is_enum_v<E> std::string word(E value) { return std::to_string(static_cast<int>(value)); }
template <class T>
std::string word(const std::vector<T>& list) {
    std::string text = "[";
    for (const T& entry : list) text += (text.size() > 1 ? " " : "") + word(entry);
    return text + "]";
}

// Every attribute that an op may have and that shapes its work, each under a letter or two of its own.
template <class T>
std::string attributes(const T& op) {
    std::string text;
    const auto put = [&](const char* name, const auto& value) { text += fmt::format(" {}{}", name, word(value)); };
    if constexpr (requires { op.window; }) put("", op.window);
    if constexpr (requires { op.groups; }) put("g", op.groups);
    if constexpr (requires { op.input; }) put("in", op.input);
    if constexpr (requires { op.output; }) put("out", op.output);
    if constexpr (requires { op.axis; }) put("a", op.axis);
    if constexpr (requires { op.rank; }) put("r", op.rank);
    if constexpr (requires { op.count_padding; }) put("cp", op.count_padding);
    if constexpr (requires { op.overflow; }) put("o", op.overflow);
    if constexpr (requires { op.mode; }) put("m", op.mode);
    if constexpr (requires { op.align_corners; }) put("ac", op.align_corners);
    if constexpr (requires { op.cells; }) put("c", op.cells);
    if constexpr (requires { op.start; }) put("at", op.start);
    if constexpr (requires { op.size; }) put("n", op.size);
    if constexpr (requires { op.kind; }) put("kind", op.kind);
    if constexpr (requires { op.slopes; }) put("n", op.slopes);
    if constexpr (requires { op.shape; }) put("to", op.shape);
    if constexpr (requires { op.lo; }) put("lo", op.lo);
    if constexpr (requires { op.hi; }) put("hi", op.hi);
    if constexpr (requires { op.order; }) put("order", op.order);
    if constexpr (requires { op.rule; }) put("", op.rule);
    if constexpr (requires { op.clipped; }) put("clip", op.clipped);
    if constexpr (requires { op.boxes; }) put("", op.boxes);
    if constexpr (requires { op.kept; }) put("kept", op.kept);
    if constexpr (requires { op.kept_at; }) put("at", op.kept_at);
    if constexpr (requires { op.counts; }) put("", op.counts);
    return text;
}

std::string operands(const Layout& layout, const std::vector<DType>& types, size_t i) {
    return types.empty() ? layout.text() : fmt::format("{}:{}", layout.text(), name_of(types[i]));
}

}  // namespace

std::string key_of(const Problem& problem) {
    std::string text;
    for (const ProblemStep& step : problem.steps)
        text += fmt::format("{}{}{} ({} -> {})", text.empty() ? "" : "; ", name_of(step.op),
                            std::visit([](const auto& op) { return attributes(op); }, step.op), fmt::join(step.inputs, " "),
                            fmt::join(step.outputs, " "));
    text += " |";
    const auto tensors = static_cast<int>(problem.tensors.size());
    for (int t = 0; t < tensors; ++t) {
        if (t == problem.inputs) text += " ->";
        if (t == problem.inputs + problem.outputs) text += " inside";
        const TensorDesc& desc = problem.tensors[static_cast<size_t>(t)];
        text += " " + to_string(desc.shape);
        if (desc.dtype != problem.compute) text += fmt::format(":{}", name_of(desc.dtype));
    }
    return text + fmt::format(" | {}", name_of(problem.compute));
}

std::string key_of(const Candidate& candidate) {
    std::string text = candidate.algorithm;
    for (size_t i = 0; i < candidate.inputs.size(); ++i)
        text += (i == 0 ? " " : ",") + operands(candidate.inputs[i], candidate.input_types, i);
    text += " ->";
    for (size_t i = 0; i < candidate.outputs.size(); ++i) text += (i == 0 ? " " : ",") + candidate.outputs[i].text();
    return text;
}

std::string key_of(const CopyProblem& copy) {
    return fmt::format("copy {} {} {} -> {} {}", to_string(copy.shape), copy.from.text(), name_of(copy.from_type), copy.to.text(),
                       name_of(copy.to_type));
}

}  // namespace convoy
