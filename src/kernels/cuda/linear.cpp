// Fully connected layers: products of matrices.
#include <memory>

#include "kernels/cuda/family.h"
#include "kernels/cuda/matmul.h"
#include "kernels/cuda/scratch.h"

namespace convoy::cuda {

namespace {

Matrix matrix(const Operand& o, bool transposed = false) {
    return {o.data, o.desc.dtype, o.desc.shape[0], o.desc.shape[1], o.desc.shape[1], transposed};
}

Product product_of(const KernelRequest& request) {
    const auto& step = request.problem.steps[0];
    const Operand &first = operand(request, step.inputs[0]), &second = operand(request, step.inputs[1]),
                  &result = operand(request, step.outputs[0]);
    if (std::holds_alternative<LinearOp>(step.op)) return {matrix(first), matrix(second, true), matrix(result)};
    if (std::holds_alternative<LinearGradInputOp>(step.op)) return {matrix(first), matrix(second), matrix(result)};
    return {matrix(second, true), matrix(first), matrix(result)};  // dw = dy^T x
}

int64_t workspace_for(const Problem& problem) { return work_of(problem) > 1e9 ? int64_t{32} << 20 : int64_t{4} << 20; }

bool accepts(const Problem& p) { return steps_are<LinearOp>(p) || steps_are<LinearGradInputOp>(p) || steps_are<LinearGradWeightOp>(p); }

std::vector<Candidate> candidates(const Problem& p) {
    Candidate candidate = only_plain(p, {}, workspace_for(p))[0];
    if (p.compute == DType::bf16) candidate.input_types.assign(static_cast<size_t>(p.inputs), DType::bf16);
    const double rate = p.compute == DType::bf16 ? 400e12 : p.compute == DType::tf32 ? 200e12 : 40e12;
    candidate.seconds = memory_seconds(p) + work_of(p) / rate;
    return {candidate};
}

std::unique_ptr<Kernel> prepare(const KernelRequest& request, Device& device) {
    const Product p = product_of(request);
    const int64_t elements = p.c.rows * p.c.columns;
    if (elements == 0) return make_kernel([](const StepContext&) {});
    if (p.a.rows * p.a.columns == 0)
        return make_kernel([&device, c = p.c.data, bytes = static_cast<size_t>(elements * size_of(p.c.dtype))](const StepContext&) {
            check(cudaMemsetAsync(c, 0, bytes, device.stream()), "cudaMemsetAsync");
        });
    const Scratch scratch(request.workspace, request.workspace_bytes);
    const auto matmul = std::make_shared<Matmul>(device, p, request.problem.compute, scratch.rest(), scratch.left());
    return make_kernel([matmul](const StepContext&) { matmul->start(); });
}

}  // namespace

Family linear_family() { return {"linear", {{accepts, candidates, prepare}}}; }

}  // namespace convoy::cuda
