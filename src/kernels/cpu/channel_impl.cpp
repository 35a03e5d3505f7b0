// Ops with one number per channel: bias [+ ReLU], PReLU, and their gradients. A bias over all dims but the first ones is one of rows, whose
// elements are channels.
#include <optional>

#include "kernels/cpu/own.h"

namespace convoy::cpu {

namespace {

using vec::ChannelMap;
using vec::ChannelSum;
using vec::Spans;
using vec::VectorKernels;

// --- Bias -----------------------------------------------------------------------------------------------------------------------

// How a bias of `rank` dims from `axis` on lies in a tensor.
enum class Placing { No, PerChannel, PerRow };
Placing placing(const Shape& x, int axis, int rank) {
    if (axis == 1 && rank == 1) return Placing::PerChannel;
    return rank >= 1 && axis + rank == x.size() ? Placing::PerRow : Placing::No;
}

std::vector<Layout> layouts(const Shape& x, Placing placing, const CpuContext& context) {
    return placing == Placing::PerRow ? std::vector<Layout>{Layout::plain()} : activation_layouts(x, context);
}
Spans spans(const Shape& x, const Layout& layout, Placing placing, int axis) {
    return placing == Placing::PerRow ? spans_of_rows(product(x, 0, axis), product(x, axis, x.size())) : spans_of(x, layout);
}

struct Biasing {
    int x, b, y;
    Placing placing;
    int axis;
    bool relu;
};

std::optional<Biasing> biasing(const Problem& p) {
    const bool relu = steps_are<BiasOp, UnaryOp>(p);
    if (!relu && !steps_are<BiasOp>(p)) return std::nullopt;
    const int x = input_of(p, 0, 0), b = input_of(p, 0, 1), axis = op_of<BiasOp>(p).axis;
    const Biasing result{x, b, output_of(p, p.steps.size() - 1), placing(shape_of(p, x), axis, shape_of(p, b).size()), axis, relu};
    if (result.placing == Placing::No) return std::nullopt;
    if (relu && !(is_relu(p, 1) && input_of(p, 1, 0) == output_of(p, 0) && is_inside(p, output_of(p, 0)))) return std::nullopt;
    return result;
}
bool accepts_bias(const Problem& p) { return biasing(p).has_value(); }

std::vector<Candidate> bias_candidates(const Problem& p, const CpuContext& context) {
    const auto b = *biasing(p);
    std::vector<Candidate> result;
    for (const auto& layout : layouts(shape_of(p, b.x), b.placing, context)) {
        Scratch scratch;
        take_channels(scratch, spans(shape_of(p, b.x), layout, b.placing, b.axis));
        result.push_back(candidate_of(
            p, context, {.layout = layout, .activations = {b.x, b.y}, .in_place = {{b.y, b.x}}, .workspace_bytes = scratch.bytes()}));
    }
    return result;
}

// A kernel for a map with one number per channel, which stand in `numbers`, or all in its first element.
std::unique_ptr<Kernel> map_kernel(vec::ChannelMapArgs args, const KernelRequest& request, const CpuContext& context,
                                   const VectorKernels& kernels, int numbers) {
    Scratch scratch(request.workspace);
    float* const vector = take_channels(scratch, args.spans);
    args.vector = vector;
    const bool only_one = numel(operand(request, numbers).desc.shape) == 1;
    const int parts = parts_for(context, args.spans.planes * args.spans.elements);
    return make_kernel([=, values = floats(request, numbers), run = kernels.channel_map](const StepContext&) {
        fill_channels(args.spans, vector, [&](int64_t c) { return values[only_one ? 0 : c]; });
        in_parts(parts, args.spans.planes * args.spans.units, [&](int, int64_t begin, int64_t end) { run(args, begin, end); });
    });
}

std::unique_ptr<Kernel> prepare_bias(const KernelRequest& request, const CpuContext& context, const VectorKernels& kernels) {
    const auto b = *biasing(request.problem);
    const Operand& x = operand(request, b.x);
    const vec::ChannelMapArgs args{.spans = spans(x.desc.shape, x.layout, b.placing, b.axis),
                                   .kind = b.relu ? ChannelMap::BiasRelu : ChannelMap::Bias,
                                   .x = floats(request, b.x),
                                   .y = floats(request, b.y)};
    return map_kernel(args, request, context, kernels, b.b);
}

Placing grad_placing(const Problem& p) {
    const auto& op = op_of<BiasGradOp>(p);
    return placing(shape_of(p, 0), op.axis, op.rank);
}
bool accepts_bias_grad(const Problem& p) { return steps_are<BiasGradOp>(p) && grad_placing(p) != Placing::No; }

std::vector<Candidate> bias_grad_candidates(const Problem& p, const CpuContext& context) {
    const Shape& x = shape_of(p, 0);
    std::vector<Candidate> result;
    for (const auto& layout : layouts(x, grad_placing(p), context)) {
        Scratch scratch;
        ChannelSums(scratch, spans(x, layout, grad_placing(p), op_of<BiasGradOp>(p).axis), context, 1);
        result.push_back(candidate_of(p, context, {.layout = layout, .activations = {0}, .workspace_bytes = scratch.bytes()}));
    }
    return result;
}

std::unique_ptr<Kernel> prepare_bias_grad(const KernelRequest& request, const CpuContext& context, const VectorKernels& kernels) {
    const Operand& dy = request.inputs[0];
    Scratch scratch(request.workspace);
    const vec::ChannelSumArgs args{
        .spans = spans(dy.desc.shape, dy.layout, grad_placing(request.problem), op_of<BiasGradOp>(request.problem).axis),
        .kind = ChannelSum::Sum,
        .x = static_cast<const float*>(dy.data)};
    const ChannelSums sums(scratch, args.spans, context, 1);
    return make_kernel([=, db = static_cast<float*>(request.outputs[0].data), run = kernels.channel_sum](const StepContext&) {
        sums.run([&](const vec::SumBuffers& buffers, int64_t begin, int64_t end) { run(args, buffers, begin, end); });
        for (int64_t c = 0; c < args.spans.channels; ++c) db[c] = static_cast<float>(sums.total(0, c));
    });
}

// --- PReLU ----------------------------------------------------------------------------------------------------------------------

template <class SomeOp>
bool accepts_activation(const Problem& p) {
    return steps_are<SomeOp>(p) && shape_of(p, input_of(p, 0, 0)).size() >= 2;
}

// The numbers of tensors that have x's shape: all but the slopes.
std::vector<int> prelu_activations(const Problem& p) {
    std::vector<int> result;
    for (int t = 0; t < p.inputs + p.outputs; ++t)
        if (shape_of(p, t) == shape_of(p, input_of(p, 0, 0))) result.push_back(t);
    return result;
}

std::vector<Candidate> prelu_candidates(const Problem& p, const CpuContext& context) {
    const Shape& x = shape_of(p, input_of(p, 0, 0));
    std::vector<Candidate> result;
    for (const auto& layout : activation_layouts(x, context)) {
        Scratch scratch;
        take_channels(scratch, spans_of(x, layout));
        Offer offer{.layout = layout, .activations = prelu_activations(p), .workspace_bytes = scratch.bytes()};
        for (const int t : offer.activations)
            if (is_input(p, t)) offer.in_place.emplace_back(output_of(p, 0), t);
        result.push_back(candidate_of(p, context, offer));
    }
    return result;
}

std::unique_ptr<Kernel> prepare_prelu(const KernelRequest& request, const CpuContext& context, const VectorKernels& kernels) {
    const Problem& p = request.problem;
    const Operand& x = operand(request, input_of(p, 0, 0));
    vec::ChannelMapArgs args{.spans = spans_of(x.desc.shape, x.layout),
                             .kind = ChannelMap::PRelu,
                             .x = static_cast<const float*>(x.data),
                             .y = floats(request, output_of(p, 0))};
    if (steps_are<PReluGradInputOp>(p)) {
        args.kind = ChannelMap::PReluGrad;
        args.dy = floats(request, input_of(p, 0, 2));
    }
    return map_kernel(args, request, context, kernels, input_of(p, 0, 1));
}

std::vector<Candidate> slope_candidates(const Problem& p, const CpuContext& context) {
    const Shape& x = shape_of(p, input_of(p, 0, 0));
    std::vector<Candidate> result;
    for (const auto& layout : activation_layouts(x, context)) {
        Scratch scratch;
        ChannelSums(scratch, spans_of(x, layout), context, 1);
        result.push_back(candidate_of(
            p, context, {.layout = layout, .activations = {input_of(p, 0, 0), input_of(p, 0, 1)}, .workspace_bytes = scratch.bytes()}));
    }
    return result;
}

std::unique_ptr<Kernel> prepare_slope(const KernelRequest& request, const CpuContext& context, const VectorKernels& kernels) {
    const Problem& p = request.problem;
    const Operand& x = operand(request, input_of(p, 0, 0));
    Scratch scratch(request.workspace);
    const vec::ChannelSumArgs args{.spans = spans_of(x.desc.shape, x.layout),
                                   .kind = ChannelSum::PReluSlope,
                                   .x = static_cast<const float*>(x.data),
                                   .dy = floats(request, input_of(p, 0, 1))};
    const ChannelSums sums(scratch, args.spans, context, 1);
    const bool only_one = op_of<PReluGradSlopeOp>(p).slopes == 1;
    return make_kernel([=, dslope = static_cast<float*>(request.outputs[0].data), run = kernels.channel_sum](const StepContext&) {
        sums.run([&](const vec::SumBuffers& buffers, int64_t begin, int64_t end) { run(args, buffers, begin, end); });
        double all = 0;
        for (int64_t c = 0; c < args.spans.channels; ++c) {
            const double sum = sums.total(0, c);
            if (!only_one) dslope[c] = static_cast<float>(sum);
            all += sum;
        }
        if (only_one) dslope[0] = static_cast<float>(all);
    });
}

}  // namespace

std::vector<Case> channel_cases() {
    return {{accepts_bias, bias_candidates, prepare_bias},
            {accepts_bias_grad, bias_grad_candidates, prepare_bias_grad},
            {accepts_activation<PReluOp>, prelu_candidates, prepare_prelu},
            {accepts_activation<PReluGradInputOp>, prelu_candidates, prepare_prelu},
            {accepts_activation<PReluGradSlopeOp>, slope_candidates, prepare_slope}};
}

}  // namespace convoy::cpu
