// Reading problems: which ops a problem is made of, and the patterns that more than one backend does in one pass. Internal to this module.
#pragma once

#include <optional>
#include <variant>

#include "kernels/backend.h"

namespace convoy {

// Whether the problem's steps are these ops, in this order.
template <class... Ops>
bool steps_are(const Problem& problem) {
    if (problem.steps.size() != sizeof...(Ops)) return false;
    size_t i = 0;
    return (std::holds_alternative<Ops>(problem.steps[i++].op) && ...);
}
template <class SomeOp>
const SomeOp& op_of(const Problem& problem, size_t step = 0) {
    return std::get<SomeOp>(problem.steps[step].op);
}
// The tensor that is an operand of a step.
inline int input_of(const Problem& problem, size_t step, size_t i) { return problem.steps[step].inputs[i]; }
inline int output_of(const Problem& problem, size_t step, size_t i = 0) { return problem.steps[step].outputs[i]; }
inline bool is_input(const Problem& problem, int tensor) { return tensor < problem.inputs; }
inline bool is_output(const Problem& problem, int tensor) { return tensor >= problem.inputs && tensor < problem.inputs + problem.outputs; }
inline bool is_inside(const Problem& problem, int tensor) { return tensor >= problem.inputs + problem.outputs; }
inline const Shape& shape_of(const Problem& problem, int tensor) { return problem.tensors[static_cast<size_t>(tensor)].shape; }
// Whether a step is a ReLU, or its gradient.
bool is_relu(const Problem& problem, size_t step);
// Whether a step reads, as its i-th input, the result of the step before it, and nobody else does.
bool continues(const Problem& problem, size_t step, size_t i = 0);

// An operand by the number of its tensor. Bug for one that stays inside.
const Operand& operand(const KernelRequest& request, int tensor);

constexpr int kNoTensor = -1;

// Batch norm's normalising: [BatchNormalize], [.., ReLU], [.., Add], [.., Add, ReLU].
struct Normalizing {
    int x, stats, gamma, beta, other = kNoTensor, y;
    bool relu = false;
    double epsilon;
};
std::optional<Normalizing> normalizing(const Problem& problem);

// How a gradient of batch norm, the last step, sees dy: as it is; through the gradient of a ReLU that reads its output and whose result `d` is
// wanted too; or through the same that reads the normalised x, which is computed again and stays inside.
enum class Masked : uint8_t { No, ByOutput, ByNormalized };
struct Masking {
    Masked mask = Masked::No;
    int dy = kNoTensor, y = kNoTensor, d = kNoTensor, gamma = kNoTensor, beta = kNoTensor;
};
// The sums over a channel, and the gradient of the input (which is never masked by the output).
std::optional<Masking> norm_grad_sums(const Problem& problem);
std::optional<Masking> norm_grad_input(const Problem& problem);

// A convolution found in a problem: which tensors are x, w, y (or their gradients), and what is fused to it: forwards a bias and an activation,
// backwards the gradient of the bias beside that of the weight.
enum class Direction : uint8_t { Forward, GradInput, GradWeight };
struct ConvProblem {
    Direction direction;
    Window window;
    int64_t groups;
    int x, w, y;
    int bias = kNoTensor;  // or its gradient
    std::optional<UnaryOp> activation = std::nullopt;
};
std::optional<ConvProblem> conv_problem(const Problem& problem);

}  // namespace convoy
