#include "kernels/patterns.h"

#include "base/error.h"

namespace convoy {

namespace {

bool has_channels(const Problem& problem, int tensor) { return shape_of(problem, tensor).size() >= 2; }

template <class Grad>
std::optional<Masking> masking(const Problem& p) {
    const auto* const op = p.steps.empty() ? nullptr : std::get_if<Grad>(&p.steps.back().op);
    if (!op) return std::nullopt;
    const size_t last = p.steps.size() - 1;
    const int x = input_of(p, last, 0), d = input_of(p, last, 1), stats = input_of(p, last, 2);
    if (!has_channels(p, x)) return std::nullopt;
    if (steps_are<Grad>(p)) return Masking{.dy = d};
    if (!is_relu(p, last - 1) || output_of(p, last - 1) != d) return std::nullopt;
    const int saved = input_of(p, last - 1, 0), dy = input_of(p, last - 1, 1);
    if (steps_are<UnaryGradOp, Grad>(p)) {
        if (!is_output(p, d) || !is_input(p, saved) || !is_input(p, dy)) return std::nullopt;
        return Masking{.mask = Masked::ByOutput, .dy = dy, .y = saved, .d = d};
    }
    if (!steps_are<BatchNormalizeOp, UnaryGradOp, Grad>(p)) return std::nullopt;
    const bool joined = output_of(p, 0) == saved && is_inside(p, saved) && is_inside(p, d) && is_input(p, dy) && input_of(p, 0, 0) == x &&
                        input_of(p, 0, 1) == stats && op_of<BatchNormalizeOp>(p).epsilon == op->epsilon;
    if (!joined) return std::nullopt;
    return Masking{.mask = Masked::ByNormalized, .dy = dy, .gamma = input_of(p, 0, 2), .beta = input_of(p, 0, 3)};
}

}  // namespace

bool is_relu(const Problem& problem, size_t step) {
    const Op& op = problem.steps[step].op;
    if (const auto* unary = std::get_if<UnaryOp>(&op)) return unary->kind == Unary::Relu;
    if (const auto* grad = std::get_if<UnaryGradOp>(&op)) return grad->kind == Unary::Relu;
    return false;
}

bool continues(const Problem& problem, size_t step, size_t i) {
    const int before = output_of(problem, step - 1);
    return input_of(problem, step, i) == before && is_inside(problem, before);
}

const Operand& operand(const KernelRequest& request, int tensor) {
    const Problem& problem = request.problem;
    CONVOY_CHECK(!is_inside(problem, tensor), "tensor {} of {} is no operand", tensor, text_of(problem));
    return is_input(problem, tensor) ? request.inputs.at(static_cast<size_t>(tensor))
                                     : request.outputs.at(static_cast<size_t>(tensor - problem.inputs));
}

std::optional<Normalizing> normalizing(const Problem& p) {
    const bool add = steps_are<BatchNormalizeOp, AddOp>(p) || steps_are<BatchNormalizeOp, AddOp, UnaryOp>(p);
    const bool activated = steps_are<BatchNormalizeOp, UnaryOp>(p) || steps_are<BatchNormalizeOp, AddOp, UnaryOp>(p);
    if (!add && !activated && !steps_are<BatchNormalizeOp>(p)) return std::nullopt;
    const auto& in = p.steps[0].inputs;
    Normalizing n{
        .x = in[0], .stats = in[1], .gamma = in[2], .beta = in[3], .y = output_of(p, 0), .epsilon = op_of<BatchNormalizeOp>(p).epsilon};
    if (!has_channels(p, n.x)) return std::nullopt;
    for (size_t step = 1; step < p.steps.size(); ++step) {
        const auto& inputs = p.steps[step].inputs;
        if (!is_inside(p, n.y)) return std::nullopt;
        if (step == 1 && add) {
            if (inputs.size() != 2 || (inputs[0] == n.y) == (inputs[1] == n.y)) return std::nullopt;
            n.other = inputs[0] == n.y ? inputs[1] : inputs[0];
        } else {
            if (!is_relu(p, step) || inputs[0] != n.y) return std::nullopt;
            n.relu = true;
        }
        n.y = output_of(p, step);
    }
    if (!is_output(p, n.y)) return std::nullopt;
    return n;
}

std::optional<Masking> norm_grad_sums(const Problem& p) { return masking<BatchNormGradSumsOp>(p); }

std::optional<Masking> norm_grad_input(const Problem& p) {
    const auto m = masking<BatchNormGradInputOp>(p);
    if (!m || m->mask == Masked::ByOutput) return std::nullopt;
    // What is normalised again must be what is differentiated.
    if (m->mask == Masked::ByNormalized && m->gamma != input_of(p, p.steps.size() - 1, 3)) return std::nullopt;
    return m;
}

std::optional<ConvProblem> conv_problem(const Problem& problem) {
    const auto& first = problem.steps[0];
    ConvProblem conv{};
    int result = first.outputs[0];
    size_t next = 1;
    if (const auto* op = std::get_if<ConvOp>(&first.op)) {
        conv = {Direction::Forward, op->window, op->groups, first.inputs[0], first.inputs[1], result};
        if (next < problem.steps.size() && std::holds_alternative<BiasOp>(problem.steps[next].op)) {
            const auto& step = problem.steps[next++];
            const bool per_channel = shape_of(problem, step.inputs[1]).size() == 1 && std::get<BiasOp>(step.op).axis == 1;
            if (step.inputs[0] != result || !per_channel) return std::nullopt;
            conv.bias = step.inputs[1];
            result = step.outputs[0];
        }
        if (next < problem.steps.size()) {
            const auto* unary = std::get_if<UnaryOp>(&problem.steps[next].op);
            if (!unary || problem.steps[next].inputs[0] != result) return std::nullopt;
            conv.activation = *unary;
            result = problem.steps[next++].outputs[0];
        }
        conv.y = result;
    } else if (const auto* dx = std::get_if<ConvGradInputOp>(&first.op)) {
        conv = {Direction::GradInput, dx->window, dx->groups, result, first.inputs[1], first.inputs[0]};
    } else if (const auto* dw = std::get_if<ConvGradWeightOp>(&first.op)) {
        conv = {Direction::GradWeight, dw->window, dw->groups, first.inputs[0], result, first.inputs[1]};
        if (next < problem.steps.size()) {
            const auto* bias = std::get_if<BiasGradOp>(&problem.steps[next].op);
            if (!bias || bias->axis != 1 || bias->rank != 1 || problem.steps[next].inputs[0] != conv.y) return std::nullopt;
            conv.bias = problem.steps[next++].outputs[0];
        }
    } else {
        return std::nullopt;
    }
    if (next != problem.steps.size()) return std::nullopt;
    return conv;
}

}  // namespace convoy
