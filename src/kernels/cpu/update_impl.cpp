// Weight updates by the own kernels: memory is taken as it lies, in whatever layout weights, gradient and state all have; its padding stays zero.
#include <cmath>

#include "base/error.h"
#include "kernels/cpu/own.h"

namespace convoy::cpu {

namespace {

using vec::UpdateArgs;
using vec::UpdateKind;
using vec::VectorKernels;

static_assert(static_cast<int>(Rule::Lars) == static_cast<int>(UpdateKind::Lars), "the rules stand in one order");

bool accepts_update(const Problem& p) { return steps_are<UpdateOp>(p) && op_of<UpdateOp>(p).rule.rule != Rule::Lamb; }

// Whether zeros stay zeros: 0/(0 + epsilon) is none without an epsilon.
bool keeps_zeros(const UpdateRule& rule) {
    const bool divides = rule.rule == Rule::AdaGrad || rule.rule == Rule::RmsProp || rule.rule == Rule::Adam || rule.rule == Rule::AdamW;
    return !divides || static_cast<float>(rule.epsilon) > 0;
}

std::vector<Candidate> update_candidates(const Problem& p, const CpuContext& context) {
    const auto& rule = op_of<UpdateOp>(p).rule;
    const auto& step = p.steps[0];
    Offer offer{.layout = keeps_zeros(rule) ? Layout::same() : Layout::plain(),
                .activations = {step.inputs[0], step.inputs[1], step.outputs[0]}};
    offer.in_place.emplace_back(step.outputs[0], step.inputs[0]);
    for (size_t slot = 0; slot < static_cast<size_t>(slots_of(rule.rule)); ++slot) {
        offer.activations.insert(offer.activations.end(), {step.inputs[3 + slot], step.outputs[1 + slot]});
        offer.in_place.emplace_back(step.outputs[1 + slot], step.inputs[3 + slot]);
    }
    return {candidate_of(p, context, offer)};
}

// What a rule reads that changes from step to step.
struct Scalars {
    const float *hyper, *w_norm = nullptr, *g_norm = nullptr, *scale = nullptr;
};

void set_step(UpdateArgs& args, const UpdateRule& rule, const Scalars& scalars) {
    const double rate = scalars.hyper[0], step = scalars.hyper[1];
    args.rate = scalars.hyper[0];
    args.scale = scalars.scale ? *scalars.scale : 1.0f;
    args.correction1 = static_cast<float>(1 - std::pow(rule.beta1, step));
    args.root_correction2 = static_cast<float>(std::sqrt(1 - std::pow(rule.beta2, step)));
    args.keep = static_cast<float>(1 - rate * rule.weight_decay);
    if (!scalars.w_norm) return;
    const double w = std::sqrt(static_cast<double>(*scalars.w_norm)),
                 g = static_cast<double>(args.scale) * std::sqrt(static_cast<double>(*scalars.g_norm));
    args.ratio = static_cast<float>(w == 0 || g == 0 ? 1 : rule.trust * w / (g + rule.weight_decay * w));
}

std::unique_ptr<Kernel> prepare_update(const KernelRequest& request, const CpuContext& context, const VectorKernels& kernels) {
    const auto& op = op_of<UpdateOp>(request.problem);
    const auto& rule = op.rule;
    const auto& step = request.problem.steps[0];
    const auto slots = static_cast<size_t>(slots_of(rule.rule));
    const Operand& w = operand(request, step.inputs[0]);
    CONVOY_CHECK(step.inputs.size() == 3 + slots + (rule.rule == Rule::Lars ? 2 : 0) + (op.clipped ? 1 : 0), "an update has {} inputs",
                 step.inputs.size());

    UpdateArgs args;
    args.kind = static_cast<UpdateKind>(rule.rule);
    args.w = static_cast<const float*>(w.data);
    args.g = floats(request, step.inputs[1]);
    args.new_w = floats(request, step.outputs[0]);
    for (size_t slot = 0; slot < slots; ++slot) {
        (slot == 0 ? args.slot0 : args.slot1) = floats(request, step.inputs[3 + slot]);
        (slot == 0 ? args.new_slot0 : args.new_slot1) = floats(request, step.outputs[1 + slot]);
        CONVOY_CHECK(operand(request, step.inputs[3 + slot]).layout == w.layout, "an update's operands differ in layout");
    }
    CONVOY_CHECK(operand(request, step.inputs[1]).layout == w.layout, "weights in {}, their gradient in {}", w.layout.text(),
                 operand(request, step.inputs[1]).layout.text());
    args.decay = static_cast<float>(rule.weight_decay);
    args.momentum = static_cast<float>(rule.momentum);
    args.epsilon = static_cast<float>(rule.epsilon);
    args.rho = static_cast<float>(rule.rho);
    args.rho_rest = static_cast<float>(1 - rule.rho);
    args.beta1 = static_cast<float>(rule.beta1);
    args.rest1 = static_cast<float>(1 - rule.beta1);
    args.beta2 = static_cast<float>(rule.beta2);
    args.rest2 = static_cast<float>(1 - rule.beta2);

    Scalars scalars{.hyper = floats(request, step.inputs[2])};
    if (rule.rule == Rule::Lars) {
        scalars.w_norm = floats(request, step.inputs[4]);
        scalars.g_norm = floats(request, step.inputs[5]);
    }
    if (op.clipped) scalars.scale = floats(request, step.inputs.back());
    const int64_t elements = memory_elements(w);
    return make_kernel([=, parts = parts_for(context, elements), run = kernels.update](const StepContext&) mutable {
        set_step(args, rule, scalars);
        in_flat_parts(parts, elements, [&](int, int64_t begin, int64_t end) { run(args, begin, end); });
    });
}

bool accepts_squared_norm(const Problem& p) { return steps_are<SquaredNormOp>(p); }

std::vector<Candidate> squared_norm_candidates(const Problem& p, const CpuContext& context) {
    Scratch scratch;
    scratch.take<double>(context.threads);
    return {candidate_of(p, context, {.layout = Layout::same(), .activations = {0}, .workspace_bytes = scratch.bytes()})};
}

std::unique_ptr<Kernel> prepare_squared_norm(const KernelRequest& request, const CpuContext& context, const VectorKernels& kernels) {
    const int64_t elements = memory_elements(request.inputs[0]);
    return make_kernel([=, x = static_cast<const float*>(request.inputs[0].data), y = static_cast<float*>(request.outputs[0].data),
                        sums = Scratch(request.workspace).take<double>(context.threads), parts = parts_for(context, elements),
                        run = kernels.squared_norm](const StepContext&) {
        in_flat_parts(parts, elements, [&](int part, int64_t begin, int64_t end) { sums[part] = run(x, begin, end); });
        double sum = 0;
        for (int part = 0; part < parts; ++part) sum += sums[part];
        *y = static_cast<float>(sum);
    });
}

}  // namespace

std::unique_ptr<Implementation> make_update_implementation(const VectorKernels& kernels) {
    return implementation_of(
        "update",
        {{accepts_update, update_candidates, prepare_update}, {accepts_squared_norm, squared_norm_candidates, prepare_squared_norm}},
        kernels);
}

const Implementation& update_implementation() {
    static const auto implementation = make_update_implementation(vector_kernels());
    return *implementation;
}

}  // namespace convoy::cpu
