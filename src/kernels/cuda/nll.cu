// The negative log-likelihood of each target by itself, and its gradient. Log-probabilities may lie plain or channels-last.
#include <limits>

#include "kernels/cuda/family.h"
#include "kernels/cuda/lines.cuh"

namespace convoy::cuda {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// A target that is neither a class nor ignored makes numbers that are none, so that it is seen.
struct Targets {
    Lines lines;
    const int32_t* target;
    int64_t ignored;
    __device__ bool is_class(int64_t t) const { return t >= 0 && t < lines.length; }
};

template <class T>
__global__ void __launch_bounds__(kThreads) nll(Targets in, const T* x, const Wide<T>* weights, T* loss, T* weight) {
    using W = Wide<T>;
    const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < in.lines.count; i += step) {
        const int64_t t = in.target[i];
        W own = t == in.ignored ? W{0} : static_cast<W>(kNaN), value = own;
        if (t != in.ignored && in.is_class(t)) {
            own = weights[t];
            value = -own * widen(x[in.lines.first(i) + t * in.lines.stride]);
        }
        loss[i] = narrow<T>(value);
        weight[i] = narrow<T>(own);
    }
}

template <class T>
__global__ void __launch_bounds__(kThreads) nll_grad(Targets in, const T* dy, const Wide<T>* weights, T* dx) {
    using W = Wide<T>;
    const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < in.lines.count; i += step) {
        const int64_t t = in.target[i], first = in.lines.first(i);
        const bool counts = t != in.ignored && in.is_class(t);
        const W rest = counts || t == in.ignored ? W{0} : static_cast<W>(kNaN);
        for (int64_t k = 0; k < in.lines.length; ++k)
            dx[first + k * in.lines.stride] = narrow<T>(counts && k == t ? -weights[t] * widen(dy[i]) : rest);
    }
}

bool accepts_nll(const Problem& p) { return steps_are<NllOp>(p); }
std::vector<Candidate> nll_candidates(const Problem& p) { return in_each_layout(p, {input_of(p, 0, 0)}); }
std::unique_ptr<Kernel> prepare_nll(const KernelRequest& request, Device& device) {
    const auto& step = request.problem.steps[0];
    const Operand& x = operand(request, step.inputs[0]);
    const Targets targets{lines_of_channels(x.desc.shape, x.layout), data_of<const int32_t>(request, step.inputs[1]),
                          std::get<NllOp>(step.op).ignored};
    std::unique_ptr<Kernel> kernel;
    with_floating(x.desc.dtype, [&](auto zero) {
        using T = decltype(zero);
        kernel =
            make_kernel([&device, targets, xs = static_cast<const T*>(x.data), weights = data_of<const Wide<T>>(request, step.inputs[2]),
                         loss = data_of<T>(request, step.outputs[0]), weight = data_of<T>(request, step.outputs[1])](const StepContext&) {
                if (targets.lines.count > 0)
                    launch(device, nll<T>, grid_for(targets.lines.count), kThreads, targets, xs, weights, loss, weight);
            });
    });
    return kernel;
}

bool accepts_nll_grad(const Problem& p) { return steps_are<NllGradOp>(p); }
std::vector<Candidate> nll_grad_candidates(const Problem& p) { return in_each_layout(p, {output_of(p, 0)}); }
std::unique_ptr<Kernel> prepare_nll_grad(const KernelRequest& request, Device& device) {
    const auto& step = request.problem.steps[0];
    const Operand& dx = operand(request, step.outputs[0]);
    const Targets targets{lines_of_channels(dx.desc.shape, dx.layout), data_of<const int32_t>(request, step.inputs[1]),
                          std::get<NllGradOp>(step.op).ignored};
    std::unique_ptr<Kernel> kernel;
    with_floating(dx.desc.dtype, [&](auto zero) {
        using T = decltype(zero);
        kernel =
            make_kernel([&device, targets, dy = data_of<const T>(request, step.inputs[0]),
                         weights = data_of<const Wide<T>>(request, step.inputs[2]), to = static_cast<T*>(dx.data)](const StepContext&) {
                if (targets.lines.count > 0) launch(device, nll_grad<T>, grid_for(targets.lines.count), kThreads, targets, dy, weights, to);
            });
    });
    return kernel;
}

}  // namespace

Family nll_family() {
    return {"nll", {{accepts_nll, nll_candidates, prepare_nll}, {accepts_nll_grad, nll_grad_candidates, prepare_nll_grad}}};
}

}  // namespace convoy::cuda
