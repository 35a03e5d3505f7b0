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

// --- Normalising -----------------------------------------------------------------------------------------------------------------

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
        if (n.other != kNoTensor) {
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
    if (n.other != kNoTensor) args.other = floats(request, n.other);
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

Mask mask_of(const Masking& m) {
    switch (m.mask) {
        case Masked::No: return Mask::None;
        case Masked::ByOutput: return Mask::Output;
        case Masked::ByNormalized: return Mask::Normalized;
    }
    return Mask::None;
}

bool accepts_sums(const Problem& p) { return norm_grad_sums(p).has_value(); }

std::vector<Candidate> sums_candidates(const Problem& p, const CpuContext& context) {
    const auto m = *norm_grad_sums(p);
    const int x = input_of(p, p.steps.size() - 1, 0);
    std::vector<Candidate> result;
    for (const auto& layout : activation_layouts(shape_of(p, x), context)) {
        const Spans spans = spans_of(shape_of(p, x), layout);
        Scratch scratch;
        Affine(scratch, spans);
        ChannelSums(scratch, spans, context, 2);
        Offer offer{.layout = layout, .activations = {x, m.dy}, .workspace_bytes = scratch.bytes()};
        if (m.mask == Masked::ByOutput) {
            offer.activations.insert(offer.activations.end(), {m.y, m.d});
            offer.in_place = {{m.d, m.dy}, {m.d, m.y}};
        }
        result.push_back(candidate_of(p, context, offer));
    }
    return result;
}

std::unique_ptr<Kernel> prepare_sums(const KernelRequest& request, const CpuContext& context, const VectorKernels& kernels) {
    const Problem& p = request.problem;
    const auto m = *norm_grad_sums(p);
    const auto& step = p.steps.back();
    const Operand& x = operand(request, step.inputs[0]);
    vec::GradSumsArgs args{
        .spans = spans_of(x.desc.shape, x.layout), .mask = mask_of(m), .x = static_cast<const float*>(x.data), .dy = floats(request, m.dy)};
    Scratch scratch(request.workspace);
    const Affine affine(scratch, args.spans);
    const ChannelSums sums(scratch, args.spans, context, 2);
    args.mean = affine.mean;
    args.scale = affine.scale;
    args.shift = affine.shift;
    if (m.mask == Masked::ByOutput) {
        args.y = floats(request, m.y);
        args.d = floats(request, m.d);
    }
    const auto stats = statistics(request, step.inputs[2], op_of<BatchNormGradSumsOp>(p, p.steps.size() - 1).epsilon);
    const float *gamma = nullptr, *beta = nullptr;
    if (m.mask == Masked::ByNormalized) {
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

bool accepts_grad_input(const Problem& p) { return norm_grad_input(p).has_value(); }

struct GradInputVectors {
    Affine affine;
    float *level, *slope;
    GradInputVectors(Scratch& scratch, const Spans& spans)
        : affine(scratch, spans), level(take_channels(scratch, spans)), slope(take_channels(scratch, spans)) {}
};

std::vector<Candidate> grad_input_candidates(const Problem& p, const CpuContext& context) {
    const auto m = *norm_grad_input(p);
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
    const auto m = *norm_grad_input(p);
    const auto& step = p.steps.back();
    const auto& op = op_of<BatchNormGradInputOp>(p, p.steps.size() - 1);
    const Operand& x = operand(request, step.inputs[0]);
    vec::GradInputArgs args{
        .spans = spans_of(x.desc.shape, x.layout), .mask = mask_of(m), .x = static_cast<const float*>(x.data), .dy = floats(request, m.dy)};
    Scratch scratch(request.workspace);
    const GradInputVectors v(scratch, args.spans);
    args.mean = v.affine.mean;
    args.scale = v.affine.scale;
    args.shift = m.mask == Masked::ByNormalized ? v.affine.shift : v.affine.mean;
    args.level = v.level;
    args.slope = v.slope;
    args.dx = floats(request, step.outputs[0]);
    const auto stats = statistics(request, step.inputs[2], op.epsilon);
    const float *gamma = floats(request, step.inputs[3]), *dgamma = floats(request, step.inputs[4]),
                *dbeta = floats(request, step.inputs[5]);
    const float* const beta = m.mask == Masked::ByNormalized ? floats(request, m.beta) : nullptr;
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
