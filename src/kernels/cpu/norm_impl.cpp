// Batch norm by the own kernels: which problems, what they need, and the numbers per channel that the kernels read.
#include <cmath>
#include <optional>

#include "base/error.h"
#include "kernels/cpu/own.h"

namespace convoy::cpu {

namespace {

using vec::Mask;
using vec::Spans;
using vec::VectorKernels;
constexpr int kNone = -1;

bool has_channels(const Problem& problem, int tensor) { return shape_of(problem, tensor).size() >= 2; }

// Statistics [2, C] with what batch norm makes of them.
struct Statistics {
    const float* mean;
    const float* variance;
    double epsilon;
    double rstd(int64_t c) const { return 1 / std::sqrt(static_cast<double>(variance[c]) + epsilon); }
};
Statistics statistics(const KernelRequest& request, int tensor, double epsilon) {
    const Operand& o = operand(request, tensor);
    const float* const data = static_cast<const float*>(o.data);
    return {data, data + o.desc.shape[1], epsilon};
}

// --- Statistics -----------------------------------------------------------------------------------------------------------------

bool accepts_stats(const Problem& p) { return steps_are<BatchStatsOp>(p) && has_channels(p, 0); }

std::vector<Candidate> stats_candidates(const Problem& p, const CpuContext& context) {
    std::vector<Candidate> result;
    for (const auto& layout : activation_layouts(shape_of(p, 0), context)) {
        Scratch scratch;
        ChannelSums(scratch, spans_of(shape_of(p, 0), layout), context, 2);
        result.push_back(candidate_of(p, context, {.layout = layout, .activations = {0}, .workspace_bytes = scratch.bytes()}));
    }
    return result;
}

std::unique_ptr<Kernel> prepare_stats(const KernelRequest& request, const CpuContext& context, const VectorKernels& kernels) {
    const Operand& x = request.inputs[0];
    Scratch scratch(request.workspace);
    const vec::StatsArgs args{spans_of(x.desc.shape, x.layout), static_cast<const float*>(x.data)};
    const ChannelSums sums(scratch, args.spans, context, 2);
    const int64_t channels = x.desc.shape[1];
    const double count = static_cast<double>(numel(x.desc.shape) / channels);
    float* const stats = static_cast<float*>(request.outputs[0].data);
    return make_kernel([=, run = kernels.stats](const StepContext&) {
        sums.run([&](const vec::SumBuffers& buffers, int64_t begin, int64_t end) { run(args, buffers, begin, end); });
        for (int64_t c = 0; c < channels; ++c) {
            const double mean = sums.total(0, c) / count, variance = sums.total(1, c) / count - mean * mean;
            stats[c] = static_cast<float>(mean);
            // In this order of arguments a NaN stays one.
            stats[channels + c] = static_cast<float>(std::max(variance, 0.0));
        }
    });
}

// --- Normalising: [BatchNormalize], [.., ReLU], [.., Add], [.., Add, ReLU] --------------------------------------------------------

struct Normalizing {
    int x, stats, gamma, beta, other = kNone, y;
    bool relu = false;
    double epsilon;
};

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

// The numbers per channel: mean, gamma*rstd, beta.
struct Affine {
    float *mean, *scale, *shift;
    Affine(Scratch& scratch, const Spans& spans)
        : mean(take_channels(scratch, spans)), scale(take_channels(scratch, spans)), shift(take_channels(scratch, spans)) {}
    void fill(const Spans& spans, const Statistics& stats, const float* gamma, const float* beta) const {
        fill_channels(spans, mean, [&](int64_t c) { return stats.mean[c]; });
        fill_channels(spans, scale, [&](int64_t c) { return static_cast<float>(stats.rstd(c) * static_cast<double>(gamma[c])); });
        if (beta) fill_channels(spans, shift, [&](int64_t c) { return beta[c]; });
    }
};

bool accepts_normalizing(const Problem& p) { return normalizing(p).has_value(); }

std::vector<Candidate> normalizing_candidates(const Problem& p, const CpuContext& context) {
    const auto n = *normalizing(p);
    std::vector<Candidate> result;
    for (const auto& layout : activation_layouts(shape_of(p, n.x), context)) {
        Scratch scratch;
        Affine(scratch, spans_of(shape_of(p, n.x), layout));
        Offer offer{.layout = layout, .activations = {n.x, n.y}, .in_place = {{n.y, n.x}}, .workspace_bytes = scratch.bytes()};
        if (n.other != kNone) {
            offer.activations.push_back(n.other);
            offer.in_place.emplace_back(n.y, n.other);
        }
        result.push_back(candidate_of(p, context, offer));
    }
    return result;
}

std::unique_ptr<Kernel> prepare_normalizing(const KernelRequest& request, const CpuContext& context, const VectorKernels& kernels) {
    const auto n = *normalizing(request.problem);
    const Operand& x = operand(request, n.x);
    vec::NormalizeArgs args{
        .spans = spans_of(x.desc.shape, x.layout), .x = floats(request, n.x), .y = floats(request, n.y), .relu = n.relu};
    Scratch scratch(request.workspace);
    const Affine affine(scratch, args.spans);
    if (n.other != kNone) args.other = floats(request, n.other);
    args.mean = affine.mean;
    args.scale = affine.scale;
    args.shift = affine.shift;
    const auto stats = statistics(request, n.stats, n.epsilon);
    const float *gamma = floats(request, n.gamma), *beta = floats(request, n.beta);
    const int parts = parts_for(context, args.spans.planes * args.spans.elements);
    return make_kernel([=, run = kernels.normalize](const StepContext&) {
        affine.fill(args.spans, stats, gamma, beta);
        in_parts(parts, args.spans.planes * args.spans.units, [&](int, int64_t begin, int64_t end) { run(args, begin, end); });
    });
}

// --- Gradients, which may see dy through the ReLU that followed -------------------------------------------------------------------

// What stands before the last step, the gradient itself: nothing; the gradient of a ReLU that reads its output and whose result is wanted too;
// or the same that reads the normalised x, which is computed again and stays inside.
struct Masking {
    Mask mask = Mask::None;
    int dy = kNone, y = kNone, d = kNone, gamma = kNone, beta = kNone;
};

template <class Grad>
std::optional<Masking> masking(const Problem& p, double epsilon) {
    const size_t last = p.steps.size() - 1;
    const int x = input_of(p, last, 0), d = input_of(p, last, 1), stats = input_of(p, last, 2);
    if (!has_channels(p, x)) return std::nullopt;
    if (steps_are<Grad>(p)) return Masking{.dy = d};
    if (!is_relu(p, last - 1) || output_of(p, last - 1) != d) return std::nullopt;
    const int saved = input_of(p, last - 1, 0), dy = input_of(p, last - 1, 1);
    if (steps_are<UnaryGradOp, Grad>(p)) {
        if (!is_output(p, d) || !is_input(p, saved) || !is_input(p, dy)) return std::nullopt;
        return Masking{.mask = Mask::Output, .dy = dy, .y = saved, .d = d};
    }
    if (!steps_are<BatchNormalizeOp, UnaryGradOp, Grad>(p)) return std::nullopt;
    const bool joined = output_of(p, 0) == saved && is_inside(p, saved) && is_inside(p, d) && is_input(p, dy) && input_of(p, 0, 0) == x &&
                        input_of(p, 0, 1) == stats && op_of<BatchNormalizeOp>(p).epsilon == epsilon;
    if (!joined) return std::nullopt;
    return Masking{.mask = Mask::Normalized, .dy = dy, .gamma = input_of(p, 0, 2), .beta = input_of(p, 0, 3)};
}

template <class Grad>
const Grad* last_op(const Problem& p) {
    return p.steps.empty() ? nullptr : std::get_if<Grad>(&p.steps.back().op);
}

std::optional<Masking> summing(const Problem& p) {
    const auto* const op = last_op<BatchNormGradSumsOp>(p);
    return op ? masking<BatchNormGradSumsOp>(p, op->epsilon) : std::nullopt;
}
bool accepts_sums(const Problem& p) { return summing(p).has_value(); }

std::vector<Candidate> sums_candidates(const Problem& p, const CpuContext& context) {
    const auto m = *summing(p);
    const int x = input_of(p, p.steps.size() - 1, 0);
    std::vector<Candidate> result;
    for (const auto& layout : activation_layouts(shape_of(p, x), context)) {
        const Spans spans = spans_of(shape_of(p, x), layout);
        Scratch scratch;
        Affine(scratch, spans);
        ChannelSums(scratch, spans, context, 2);
        Offer offer{.layout = layout, .activations = {x, m.dy}, .workspace_bytes = scratch.bytes()};
        if (m.mask == Mask::Output) {
            offer.activations.insert(offer.activations.end(), {m.y, m.d});
            offer.in_place = {{m.d, m.dy}, {m.d, m.y}};
        }
        result.push_back(candidate_of(p, context, offer));
    }
    return result;
}

std::unique_ptr<Kernel> prepare_sums(const KernelRequest& request, const CpuContext& context, const VectorKernels& kernels) {
    const Problem& p = request.problem;
    const auto m = *summing(p);
    const auto& step = p.steps.back();
    const Operand& x = operand(request, step.inputs[0]);
    vec::GradSumsArgs args{
        .spans = spans_of(x.desc.shape, x.layout), .mask = m.mask, .x = static_cast<const float*>(x.data), .dy = floats(request, m.dy)};
    Scratch scratch(request.workspace);
    const Affine affine(scratch, args.spans);
    const ChannelSums sums(scratch, args.spans, context, 2);
    args.mean = affine.mean;
    args.scale = affine.scale;
    args.shift = affine.shift;
    if (m.mask == Mask::Output) {
        args.y = floats(request, m.y);
        args.d = floats(request, m.d);
    }
    const auto stats = statistics(request, step.inputs[2], op_of<BatchNormGradSumsOp>(p, p.steps.size() - 1).epsilon);
    const float *gamma = nullptr, *beta = nullptr;
    if (m.mask == Mask::Normalized) {
        gamma = floats(request, m.gamma);
        beta = floats(request, m.beta);
    }
    float *const dgamma = floats(request, step.outputs[0]), *const dbeta = floats(request, step.outputs[1]);
    return make_kernel([=, run = kernels.grad_sums](const StepContext&) {
        if (gamma)
            affine.fill(args.spans, stats, gamma, beta);
        else
            fill_channels(args.spans, affine.mean, [&](int64_t c) { return stats.mean[c]; });
        sums.run([&](const vec::SumBuffers& buffers, int64_t begin, int64_t end) { run(args, buffers, begin, end); });
        for (int64_t c = 0; c < args.spans.channels; ++c) {
            dbeta[c] = static_cast<float>(sums.total(0, c));
            dgamma[c] = static_cast<float>(stats.rstd(c) * sums.total(1, c));
        }
    });
}

std::optional<Masking> grad_input(const Problem& p) {
    const auto* const op = last_op<BatchNormGradInputOp>(p);
    auto m = op ? masking<BatchNormGradInputOp>(p, op->epsilon) : std::nullopt;
    if (!m || m->mask == Mask::Output) return std::nullopt;
    // What is normalised again must be what is differentiated.
    if (m->mask == Mask::Normalized && m->gamma != input_of(p, p.steps.size() - 1, 3)) return std::nullopt;
    return m;
}
bool accepts_grad_input(const Problem& p) { return grad_input(p).has_value(); }

struct GradInputVectors {
    Affine affine;
    float *level, *slope;
    GradInputVectors(Scratch& scratch, const Spans& spans)
        : affine(scratch, spans), level(take_channels(scratch, spans)), slope(take_channels(scratch, spans)) {}
};

std::vector<Candidate> grad_input_candidates(const Problem& p, const CpuContext& context) {
    const auto m = *grad_input(p);
    const auto& step = p.steps.back();
    const int x = step.inputs[0], dx = step.outputs[0];
    std::vector<Candidate> result;
    for (const auto& layout : activation_layouts(shape_of(p, x), context)) {
        Scratch scratch;
        GradInputVectors(scratch, spans_of(shape_of(p, x), layout));
        result.push_back(candidate_of(
            p, context,
            {.layout = layout, .activations = {x, m.dy, dx}, .in_place = {{dx, m.dy}, {dx, x}}, .workspace_bytes = scratch.bytes()}));
    }
    return result;
}

std::unique_ptr<Kernel> prepare_grad_input(const KernelRequest& request, const CpuContext& context, const VectorKernels& kernels) {
    const Problem& p = request.problem;
    const auto m = *grad_input(p);
    const auto& step = p.steps.back();
    const auto& op = op_of<BatchNormGradInputOp>(p, p.steps.size() - 1);
    const Operand& x = operand(request, step.inputs[0]);
    vec::GradInputArgs args{
        .spans = spans_of(x.desc.shape, x.layout), .mask = m.mask, .x = static_cast<const float*>(x.data), .dy = floats(request, m.dy)};
    Scratch scratch(request.workspace);
    const GradInputVectors v(scratch, args.spans);
    args.mean = v.affine.mean;
    args.scale = v.affine.scale;
    args.shift = m.mask == Mask::Normalized ? v.affine.shift : v.affine.mean;
    args.level = v.level;
    args.slope = v.slope;
    args.dx = floats(request, step.outputs[0]);
    const auto stats = statistics(request, step.inputs[2], op.epsilon);
    const float *gamma = floats(request, step.inputs[3]), *dgamma = floats(request, step.inputs[4]),
                *dbeta = floats(request, step.inputs[5]);
    const float* const beta = m.mask == Mask::Normalized ? floats(request, m.beta) : nullptr;
    const double count = static_cast<double>(op.count);
    const int parts = parts_for(context, args.spans.planes * args.spans.elements);
    return make_kernel([=, run = kernels.grad_input](const StepContext&) {
        v.affine.fill(args.spans, stats, gamma, beta);
        fill_channels(args.spans, v.level, [&](int64_t c) { return static_cast<float>(static_cast<double>(dbeta[c]) / count); });
        fill_channels(args.spans, v.slope,
                      [&](int64_t c) { return static_cast<float>(stats.rstd(c) * static_cast<double>(dgamma[c]) / count); });
        in_parts(parts, args.spans.planes * args.spans.units, [&](int, int64_t begin, int64_t end) { run(args, begin, end); });
    });
}

}  // namespace

std::unique_ptr<Implementation> make_norm_implementation(const VectorKernels& kernels) {
    return implementation_of("norm",
                             {{accepts_stats, stats_candidates, prepare_stats},
                              {accepts_normalizing, normalizing_candidates, prepare_normalizing},
                              {accepts_sums, sums_candidates, prepare_sums},
                              {accepts_grad_input, grad_input_candidates, prepare_grad_input}},
                             kernels);
}

const Implementation& norm_implementation() {
    static const auto implementation = make_norm_implementation(vector_kernels());
    return *implementation;
}

}  // namespace convoy::cpu
