// Elementwise ops by the own kernels. Where zeros stay zeros, memory is taken as it lies, padding included, in whatever layout all operands have.
#include "base/error.h"
#include "kernels/cpu/own.h"

namespace convoy::cpu {

namespace {

using vec::VectorKernels;

// --- Ops of one tensor or more of one shape -------------------------------------------------------------------------------------

// Flat cases have only activations among their operands, and one output, which may lie in the place of any input.
std::vector<Candidate> flat_candidates(const Problem& p, const CpuContext& context) {
    Offer offer{.layout = Layout::same()};
    for (int t = 0; t < p.inputs + p.outputs; ++t) offer.activations.push_back(t);
    for (int t = 0; t < p.inputs; ++t) offer.in_place.emplace_back(p.inputs, t);
    return {candidate_of(p, context, offer)};
}

// Elements of every operand; Bug when layouts differ.
int64_t flat_elements(const KernelRequest& request) {
    const Operand& y = request.outputs[0];
    for (const auto& x : request.inputs)
        CONVOY_CHECK(x.layout == y.layout && x.desc.shape == y.desc.shape, "{}: {} in {} and {} in {}", text_of(request.problem),
                     to_string(x.desc.shape), x.layout.text(), to_string(y.desc.shape), y.layout.text());
    return memory_elements(y);
}

// A kernel that runs fn(args, begin, end) over all elements.
template <class Args>
std::unique_ptr<Kernel> flat_kernel(const KernelRequest& request, const CpuContext& context, void (*fn)(const Args&, int64_t, int64_t),
                                    const Args& args) {
    const int64_t elements = flat_elements(request);
    return make_kernel([=, parts = parts_for(context, elements)](const StepContext&) {
        in_flat_parts(parts, elements, [&](int, int64_t begin, int64_t end) { fn(args, begin, end); });
    });
}

float* input_data(const KernelRequest& request, size_t i) { return static_cast<float*>(request.inputs.at(i).data); }
float* output_data(const KernelRequest& request) { return static_cast<float*>(request.outputs.at(0).data); }

static_assert(static_cast<int>(Unary::Silu) == static_cast<int>(vec::UnaryKind::Silu), "the kinds stand in one order");
vec::UnaryKind kind_of(Unary kind) { return static_cast<vec::UnaryKind>(kind); }

// All kinds but the sigmoid, which makes halves of zeros.
bool accepts_unary(const Problem& p) { return steps_are<UnaryOp>(p) && op_of<UnaryOp>(p).kind != Unary::Sigmoid; }

vec::UnaryArgs unary_args(const KernelRequest& request) {
    const auto& op = op_of<UnaryOp>(request.problem);
    return {.kind = kind_of(op.kind), .alpha = static_cast<float>(op.alpha), .x = input_data(request, 0), .y = output_data(request)};
}
std::unique_ptr<Kernel> prepare_unary(const KernelRequest& request, const CpuContext& context, const VectorKernels& kernels) {
    return flat_kernel(request, context, kernels.unary, unary_args(request));
}

bool accepts_unary_grad(const Problem& p) { return steps_are<UnaryGradOp>(p); }

std::unique_ptr<Kernel> prepare_unary_grad(const KernelRequest& request, const CpuContext& context, const VectorKernels& kernels) {
    const auto& op = op_of<UnaryGradOp>(request.problem);
    const vec::UnaryArgs args{.kind = kind_of(op.kind),
                              .alpha = static_cast<float>(op.alpha),
                              .x = floats(request, input_of(request.problem, 0, 0)),
                              .dy = floats(request, input_of(request.problem, 0, 1)),
                              .y = output_data(request)};
    return flat_kernel(request, context, kernels.unary_grad, args);
}

// [Add] and [Add, ReLU].
bool accepts_add(const Problem& p) {
    if (steps_are<AddOp>(p)) return true;
    return steps_are<AddOp, UnaryOp>(p) && is_relu(p, 1) && input_of(p, 1, 0) == output_of(p, 0) && is_inside(p, output_of(p, 0));
}

std::unique_ptr<Kernel> prepare_add(const KernelRequest& request, const CpuContext& context, const VectorKernels& kernels) {
    const int64_t elements = flat_elements(request);
    // By step, because a tensor may be added to itself.
    std::vector<const float*> inputs;
    for (const int t : request.problem.steps[0].inputs) inputs.push_back(floats(request, t));
    return make_kernel([=, inputs = std::move(inputs), y = output_data(request), relu = request.problem.steps.size() > 1,
                        parts = parts_for(context, elements), run = kernels.add](const StepContext&) {
        const vec::AddArgs args{inputs.data(), static_cast<int64_t>(inputs.size()), y, relu};
        in_flat_parts(parts, elements, [&](int, int64_t begin, int64_t end) { run(args, begin, end); });
    });
}

bool accepts_mul(const Problem& p) { return steps_are<MulOp>(p); }

std::unique_ptr<Kernel> prepare_mul(const KernelRequest& request, const CpuContext& context, const VectorKernels& kernels) {
    const vec::PairArgs args{.a = floats(request, input_of(request.problem, 0, 0)),
                             .b = floats(request, input_of(request.problem, 0, 1)),
                             .y = output_data(request)};
    return flat_kernel(request, context, kernels.mul, args);
}

bool accepts_scale(const Problem& p) { return steps_are<ScaleOp>(p); }

std::unique_ptr<Kernel> prepare_scale(const KernelRequest& request, const CpuContext& context, const VectorKernels& kernels) {
    const vec::PairArgs args{
        .a = input_data(request, 0), .y = output_data(request), .factor = static_cast<float>(op_of<ScaleOp>(request.problem).factor)};
    return flat_kernel(request, context, kernels.scale, args);
}

// --- The sigmoid ----------------------------------------------------------------------------------------------------------------

bool accepts_sigmoid(const Problem& p) { return steps_are<UnaryOp>(p) && op_of<UnaryOp>(p).kind == Unary::Sigmoid; }

std::vector<Candidate> sigmoid_candidates(const Problem& p, const CpuContext& context) {
    std::vector<Candidate> result;
    for (const auto& layout : activation_layouts(shape_of(p, 0), context))
        result.push_back(candidate_of(p, context, {.layout = layout, .activations = {0, 1}, .in_place = {{1, 0}}}));
    return result;
}

std::unique_ptr<Kernel> prepare_sigmoid(const KernelRequest& request, const CpuContext& context, const VectorKernels& kernels) {
    const Operand& y = request.outputs[0];
    auto flat = flat_kernel(request, context, kernels.unary, unary_args(request));
    if (y.layout.inner.empty()) return flat;
    const Blocks b = blocks_of(y.desc.shape, y.layout);
    const int64_t used = b.channels - (b.blocks - 1) * b.lanes;  // lanes of the last block
    return make_kernel([=, flat = std::move(flat), data = output_data(request)](const StepContext& step) {
        flat->run(step);
        if (used == b.lanes) return;
        for (int64_t n = 0; n < b.n; ++n)
            for (int64_t s = 0; s < b.s; ++s)
                std::fill_n(data + ((n * b.blocks + b.blocks - 1) * b.s + s) * b.lanes + used, b.lanes - used, 0.0f);
    });
}

}  // namespace

std::unique_ptr<Implementation> make_elementwise_implementation(const VectorKernels& kernels) {
    std::vector<Case> cases{{accepts_unary, flat_candidates, prepare_unary},
                            {accepts_sigmoid, sigmoid_candidates, prepare_sigmoid},
                            {accepts_unary_grad, flat_candidates, prepare_unary_grad},
                            {accepts_add, flat_candidates, prepare_add},
                            {accepts_mul, flat_candidates, prepare_mul},
                            {accepts_scale, flat_candidates, prepare_scale}};
    for (const auto& c : channel_cases()) cases.push_back(c);
    cases.push_back(dropout_case());
    return implementation_of("elementwise", std::move(cases), kernels);
}

const Implementation& elementwise_implementation() {
    static const auto implementation = make_elementwise_implementation(vector_kernels());
    return *implementation;
}

}  // namespace convoy::cpu
