// Fully connected layers by oneDNN's matrix product: forward with bias and ReLU, input gradient, weight gradient with the bias's. Everything
// stays plain: the weights are read once per pass, which is what these layers cost.
#include <algorithm>

#include "base/error.h"
#include "kernels/cpu/implementation.h"
#include "kernels/cpu/onednn/gemm.h"
#include "kernels/cpu/onednn/implementations.h"

namespace convoy::cpu {

namespace {

// y[m, n] += bias[n], then the leaky ReLU with this slope (1: none).
void add_bias(float* y, const float* bias, int64_t m, int64_t n, float slope) {
    for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
            const float v = y[i * n + j] + (bias ? bias[j] : 0);
            y[i * n + j] = v > 0 ? v : v * slope;
        }
}

// bias[n] = the sum of the rows of dy[m, n].
void sum_rows(const float* dy, float* bias, int64_t m, int64_t n) {
    std::fill_n(bias, n, 0.0f);
    for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) bias[j] += dy[i * n + j];
}

class LinearKernel : public Kernel {
  public:
    LinearKernel(const KernelRequest& request, int threads) : threads_(threads) {
        const Problem& problem = request.problem;
        const auto operand = [&](int t) -> const Operand& {
            return t < problem.inputs ? request.inputs[static_cast<size_t>(t)] : request.outputs[static_cast<size_t>(t - problem.inputs)];
        };
        const auto floats = [&](int t) { return static_cast<float*>(operand(t).data); };
        const auto& first = problem.steps[0];
        const Shape &a = operand(first.inputs[0]).desc.shape, &b = operand(first.inputs[1]).desc.shape;
        const auto *p = floats(first.inputs[0]), *q = floats(first.inputs[1]);
        int result = first.outputs[0];
        if (std::holds_alternative<LinearOp>(first.op)) {
            product_ = {.m = a[0], .n = b[0], .k = a[1], .a = {p, a[1]}, .b = {q, b[1], true}};
            for (size_t s = 1; s < problem.steps.size(); ++s) {
                const auto& step = problem.steps[s];
                if (const auto* unary = std::get_if<UnaryOp>(&step.op))
                    slope_ = static_cast<float>(unary->kind == Unary::Relu ? 0 : unary->alpha);
                else
                    bias_ = floats(step.inputs[1]);
                result = step.outputs[0];
            }
        } else if (std::holds_alternative<LinearGradInputOp>(first.op)) {
            product_ = {.m = a[0], .n = b[1], .k = a[1], .a = {p, a[1]}, .b = {q, b[1]}};
        } else {  // x[N,I], dy[N,O] -> dw[O,I] = dy^T x
            product_ = {.m = b[1], .n = a[1], .k = a[0], .a = {q, b[1], true}, .b = {p, a[1]}};
            if (problem.steps.size() == 2) bias_gradient_ = floats(problem.steps[1].outputs[0]);
        }
        product_.c = floats(result);
        product_.c_step = product_.n;
    }

    void run(const StepContext&) override {
        use_threads(threads_);
        product_.run();
        if (bias_ || slope_ != 1) add_bias(product_.c, bias_, product_.m, product_.n, slope_);
        if (bias_gradient_) sum_rows(product_.a.data, bias_gradient_, product_.k, product_.m);
    }

  private:
    Gemm product_;
    const float* bias_ = nullptr;
    float* bias_gradient_ = nullptr;
    float slope_ = 1;
    int threads_;
};

bool recognised(const Problem& problem) {
    for (const auto& t : problem.tensors)
        if (t.dtype != DType::f32) return false;
    const auto& steps = problem.steps;
    const auto follows = [&](size_t s) { return steps[s].inputs[0] == steps[s - 1].outputs[0]; };
    if (std::holds_alternative<LinearOp>(steps[0].op)) {
        size_t next = 1;
        if (next < steps.size() && std::holds_alternative<BiasOp>(steps[next].op) && follows(next)) ++next;
        if (next < steps.size())
            if (const auto* unary = std::get_if<UnaryOp>(&steps[next].op);
                unary && follows(next) && (unary->kind == Unary::Relu || unary->kind == Unary::LeakyRelu))
                ++next;
        return next == steps.size();
    }
    if (std::holds_alternative<LinearGradInputOp>(steps[0].op)) return steps.size() == 1;
    if (!std::holds_alternative<LinearGradWeightOp>(steps[0].op)) return false;
    return steps.size() == 1 ||
           (steps.size() == 2 && std::holds_alternative<BiasGradOp>(steps[1].op) && steps[1].inputs[0] == steps[0].inputs[1]);
}

class OneDnnLinear : public Implementation {
  public:
    std::string_view name() const override { return "onednn-linear"; }

    std::vector<Candidate> candidates(const Problem& problem, const CpuContext& context) const override {
        if (!recognised(problem)) return {};
        Candidate candidate{.algorithm = std::string(name())};
        candidate.inputs.resize(static_cast<size_t>(problem.inputs));
        candidate.outputs.resize(static_cast<size_t>(problem.outputs));
        double elements = 0;
        for (const auto& t : problem.tensors) elements += static_cast<double>(numel(t.shape));
        candidate.seconds = elements * 4 / 8e9 / context.threads;
        return {candidate};
    }

    std::unique_ptr<Kernel> prepare(const KernelRequest& request, const CpuContext& context) const override {
        return std::make_unique<LinearKernel>(request, context.threads);
    }
};

}  // namespace

const Implementation& onednn_linear() {
    static const OneDnnLinear instance;
    return instance;
}

}  // namespace convoy::cpu
