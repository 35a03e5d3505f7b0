// Losses and softmax by the own kernels: lines of classes, in [N, K] and per pixel, plain or channels-last.
#include "kernels/cpu/own.h"

namespace convoy::cpu {

namespace {

using vec::LineArgs;
using vec::VectorKernels;

// --- Lines of classes -----------------------------------------------------------------------------------------------------------

int64_t lines_of(const Shape& logits) { return numel(logits) / logits[1]; }

// Memory for `threads` buffers and partial sums.
struct LineMemory {
    float* buffers;
    double* sums;
    int64_t stride;
    LineMemory(Scratch& scratch, const Shape& logits, const CpuContext& context) : stride(vec::kLineBuffers * 16 * logits[1]) {
        buffers = scratch.take<float>(context.threads * stride);
        sums = scratch.take<double>(context.threads);
    }
};

template <class SomeOp>
bool accepts_lines(const Problem& p) {
    return steps_are<SomeOp>(p) && shape_of(p, input_of(p, 0, 0)).size() >= 2;
}
template <class SomeOp>
bool accepts_softmax(const Problem& p) {
    return accepts_lines<SomeOp>(p) && op_of<SomeOp>(p).axis == 1;
}

// Operands of the logits' type and shape have the layout.
std::vector<Candidate> lines_candidates(const Problem& p, const CpuContext& context) {
    const int logits = input_of(p, 0, 0);
    const Shape& shape = shape_of(p, logits);
    std::vector<Candidate> result;
    for (const auto& layout : activation_layouts(shape, context)) {
        if (!layout.inner.empty()) continue;
        Scratch scratch;
        LineMemory(scratch, shape, context);
        Offer offer{.layout = layout, .workspace_bytes = scratch.bytes(), .slowness = 2};
        for (int t = 0; t < p.inputs + p.outputs; ++t)
            if (shape_of(p, t) == shape && p.tensors[static_cast<size_t>(t)].dtype == DType::f32) offer.activations.push_back(t);
        result.push_back(candidate_of(p, context, offer));
    }
    return result;
}

LineArgs line_args(const KernelRequest& request) {
    const Problem& p = request.problem;
    const Operand& logits = operand(request, input_of(p, 0, 0));
    LineArgs args;
    args.classes = logits.desc.shape[1];
    args.inner = logits.layout.is_plain() ? product(logits.desc.shape, 2, logits.desc.shape.size()) : 1;
    args.x = static_cast<const float*>(logits.data);
    return args;
}

// Runs fn(args, part, begin, end) over all lines, each part with a buffer of its own.
template <class Fn>
void over_lines(const LineArgs& args, const LineMemory& memory, int64_t lines, const CpuContext& context, const Fn& fn) {
    in_parts(parts_for(context, lines * args.classes), lines, [&](int part, int64_t begin, int64_t end) {
        LineArgs own = args;
        own.buffer = memory.buffers + part * memory.stride;
        fn(own, part, begin, end);
    });
}

std::unique_ptr<Kernel> prepare_softmax(const KernelRequest& request, const CpuContext& context, const VectorKernels& kernels) {
    const Problem& p = request.problem;
    const bool gradient = steps_are<SoftmaxGradOp>(p);
    LineArgs args = line_args(request);
    args.y = floats(request, output_of(p, 0));
    if (gradient) args.dy = floats(request, input_of(p, 0, 1));
    Scratch scratch(request.workspace);
    const Shape& shape = shape_of(p, input_of(p, 0, 0));
    const LineMemory memory(scratch, shape, context);
    return make_kernel([=, lines = lines_of(shape), run = gradient ? kernels.softmax_grad : kernels.softmax](const StepContext&) {
        over_lines(args, memory, lines, context, [&](const LineArgs& own, int, int64_t begin, int64_t end) { run(own, begin, end); });
    });
}

// logits, target, [class weights, normaliser].
template <class SomeOp, class Fn>
std::unique_ptr<Kernel> entropy_kernel(const KernelRequest& request, const CpuContext& context, const Fn& fn) {
    const Problem& p = request.problem;
    const auto& op = op_of<SomeOp>(p);
    const auto& inputs = p.steps[0].inputs;
    LineArgs args = line_args(request);
    args.target = static_cast<const int32_t*>(operand(request, inputs[1]).data);
    args.smoothing = op.label_smoothing;
    if (inputs.size() > 2) args.weights = floats(request, inputs[2]);
    const float* const normaliser = inputs.size() > 3 ? floats(request, inputs[3]) : nullptr;
    Scratch scratch(request.workspace);
    const Shape& shape = shape_of(p, inputs[0]);
    const LineMemory memory(scratch, shape, context);
    float* const y = floats(request, output_of(p, 0));
    return make_kernel([=, lines = lines_of(shape), scale = op.scale](const StepContext&) mutable {
        args.scale = normaliser ? scale / static_cast<double>(*normaliser) : scale;
        args.weight_sum = static_cast<double>(args.classes);
        if (args.weights) {
            args.weight_sum = 0;
            for (int64_t k = 0; k < args.classes; ++k) args.weight_sum += static_cast<double>(args.weights[k]);
        }
        fn(args, memory, lines, context, y);
    });
}

double sum_of(const LineMemory& memory, int64_t lines, int64_t classes, const CpuContext& context) {
    double sum = 0;
    for (int part = 0; part < parts_for(context, lines * classes); ++part) sum += memory.sums[part];
    return sum;
}

std::unique_ptr<Kernel> prepare_cross_entropy(const KernelRequest& request, const CpuContext& context, const VectorKernels& kernels) {
    return entropy_kernel<CrossEntropyOp>(
        request, context,
        [run = kernels.cross_entropy](const LineArgs& args, const LineMemory& memory, int64_t lines, const CpuContext& c, float* y) {
            over_lines(args, memory, lines, c,
                       [&](const LineArgs& own, int part, int64_t begin, int64_t end) { memory.sums[part] = run(own, begin, end); });
            *y = static_cast<float>(args.scale * sum_of(memory, lines, args.classes, c));
        });
}

std::unique_ptr<Kernel> prepare_cross_entropy_grad(const KernelRequest& request, const CpuContext& context, const VectorKernels& kernels) {
    return entropy_kernel<CrossEntropyGradOp>(
        request, context,
        [run = kernels.cross_entropy_grad](LineArgs args, const LineMemory& memory, int64_t lines, const CpuContext& c, float* y) {
            args.y = y;
            over_lines(args, memory, lines, c, [&](const LineArgs& own, int, int64_t begin, int64_t end) { run(own, begin, end); });
        });
}

std::unique_ptr<Kernel> prepare_correct(const KernelRequest& request, const CpuContext& context, const VectorKernels& kernels) {
    const Problem& p = request.problem;
    LineArgs args = line_args(request);
    args.target = static_cast<const int32_t*>(operand(request, input_of(p, 0, 1)).data);
    Scratch scratch(request.workspace);
    const Shape& shape = shape_of(p, input_of(p, 0, 0));
    const LineMemory memory(scratch, shape, context);
    return make_kernel([=, lines = lines_of(shape), y = floats(request, output_of(p, 0)), run = kernels.correct](const StepContext&) {
        over_lines(args, memory, lines, context, [&](const LineArgs& own, int part, int64_t begin, int64_t end) {
            memory.sums[part] = static_cast<double>(run(own, begin, end));
        });
        *y = static_cast<float>(sum_of(memory, lines, args.classes, context));
    });
}

// --- Errors against a target of the same shape: any layout, because padding has no error --------------------------------------------

bool accepts_error(const Problem& p) { return steps_are<ErrorLossOp>(p); }
bool accepts_error_grad(const Problem& p) { return steps_are<ErrorLossGradOp>(p); }

std::vector<Candidate> error_candidates(const Problem& p, const CpuContext& context) {
    Scratch scratch;
    scratch.take<double>(context.threads);
    Offer offer{.layout = Layout::same(), .activations = {0, 1}, .workspace_bytes = scratch.bytes()};
    if (steps_are<ErrorLossGradOp>(p)) {
        offer.activations.push_back(output_of(p, 0));
        offer.in_place = {{output_of(p, 0), 0}, {output_of(p, 0), 1}};
    }
    return {candidate_of(p, context, offer)};
}

template <class SomeOp>
vec::PairArgs error_args(const KernelRequest& request) {
    const auto& op = op_of<SomeOp>(request.problem);
    return {.a = floats(request, input_of(request.problem, 0, 0)),
            .b = floats(request, input_of(request.problem, 0, 1)),
            .y = floats(request, output_of(request.problem, 0)),
            .factor = static_cast<float>(op.scale),
            .squared = op.kind == ErrorKind::Squared};
}

std::unique_ptr<Kernel> prepare_error(const KernelRequest& request, const CpuContext& context, const VectorKernels& kernels) {
    const int64_t elements = memory_elements(request.inputs[0]);
    return make_kernel([=, args = error_args<ErrorLossOp>(request), scale = op_of<ErrorLossOp>(request.problem).scale,
                        sums = Scratch(request.workspace).take<double>(context.threads), parts = parts_for(context, elements),
                        run = kernels.error_loss](const StepContext&) {
        in_flat_parts(parts, elements, [&](int part, int64_t begin, int64_t end) { sums[part] = run(args, begin, end); });
        double sum = 0;
        for (int part = 0; part < parts; ++part) sum += sums[part];
        *args.y = static_cast<float>(scale * sum);
    });
}

std::unique_ptr<Kernel> prepare_error_grad(const KernelRequest& request, const CpuContext& context, const VectorKernels& kernels) {
    const int64_t elements = memory_elements(request.inputs[0]);
    return make_kernel([=, args = error_args<ErrorLossGradOp>(request), parts = parts_for(context, elements),
                        run = kernels.error_grad](const StepContext&) {
        in_flat_parts(parts, elements, [&](int, int64_t begin, int64_t end) { run(args, begin, end); });
    });
}

}  // namespace

std::unique_ptr<Implementation> make_loss_implementation(const VectorKernels& kernels) {
    return implementation_of("loss",
                             {{accepts_softmax<SoftmaxOp>, lines_candidates, prepare_softmax},
                              {accepts_softmax<SoftmaxGradOp>, lines_candidates, prepare_softmax},
                              {accepts_lines<CrossEntropyOp>, lines_candidates, prepare_cross_entropy},
                              {accepts_lines<CrossEntropyGradOp>, lines_candidates, prepare_cross_entropy_grad},
                              {accepts_lines<CorrectOp>, lines_candidates, prepare_correct},
                              {accepts_error, error_candidates, prepare_error},
                              {accepts_error_grad, error_candidates, prepare_error_grad}},
                             kernels);
}

const Implementation& loss_implementation() {
    static const auto implementation = make_loss_implementation(vector_kernels());
    return *implementation;
}

}  // namespace convoy::cpu
