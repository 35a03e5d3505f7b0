// Softmax, its logarithm, and their gradients, along any dim of a plain tensor.
#include "kernels/cuda/family.h"
#include "kernels/cuda/lines.cuh"

namespace convoy::cuda {

namespace {

template <class T, int kLanes, bool kLog>
__global__ void __launch_bounds__(kThreads) softmax(Lines lines, const T* x, T* y) {
    const int64_t thread = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x,
                  step = static_cast<int64_t>(gridDim.x) * blockDim.x / kLanes;
    const int lane = static_cast<int>(thread % kLanes);
    for (int64_t i = thread / kLanes; i < lines.count; i += step) {
        const int64_t first = lines.first(i);
        const auto e = exponentials<kLanes>(lines, x + first, lane);
        const Wide<T> scale = Wide<T>{1} / e.sum, log_sum = kLog ? log(e.sum) : Wide<T>{0};
        for (int64_t k = lane; k < lines.length; k += kLanes) {
            const int64_t at = first + k * lines.stride;
            const Wide<T> below = widen(x[at]) - e.largest;
            y[at] = narrow<T>(kLog ? below - log_sum : exp(below) * scale);
        }
    }
}

// From the output y: y * (dy - sum of y * dy), or of the logarithm dy - exp(y) * sum of dy.
template <class T, int kLanes, bool kLog>
__global__ void __launch_bounds__(kThreads) softmax_grad(Lines lines, const T* y, const T* dy, T* dx) {
    const int64_t thread = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x,
                  step = static_cast<int64_t>(gridDim.x) * blockDim.x / kLanes;
    const int lane = static_cast<int>(thread % kLanes);
    for (int64_t i = thread / kLanes; i < lines.count; i += step) {
        const int64_t first = lines.first(i);
        Wide<T> sum = 0;
        for (int64_t k = lane; k < lines.length; k += kLanes)
            sum += (kLog ? Wide<T>{1} : widen(y[first + k * lines.stride])) * widen(dy[first + k * lines.stride]);
        sum = lanes_sum<kLanes>(sum);
        for (int64_t k = lane; k < lines.length; k += kLanes) {
            const int64_t at = first + k * lines.stride;
            dx[at] = narrow<T>(kLog ? widen(dy[at]) - exp(widen(y[at])) * sum : widen(y[at]) * (widen(dy[at]) - sum));
        }
    }
}

template <class Forward, class Backward>
bool accepts(const Problem& p) {
    return steps_are<Forward>(p) || steps_are<Backward>(p);
}
std::vector<Candidate> candidates(const Problem& p) { return only_plain(p); }

template <class Forward, class Backward, bool kLog>
std::unique_ptr<Kernel> prepare(const KernelRequest& request, Device& device) {
    const auto& step = request.problem.steps[0];
    const auto* const forward = std::get_if<Forward>(&step.op);
    const Operand &in = operand(request, step.inputs[0]), &out = operand(request, step.outputs[0]);
    const Lines lines = lines_along(in.desc.shape, forward ? forward->axis : std::get<Backward>(step.op).axis);
    const bool wide = wide_lines(lines);
    const dim3 grid = grid_for(lines.count * (wide ? 32 : 1));
    std::unique_ptr<Kernel> kernel;
    with_floating(in.desc.dtype, [&](auto zero) {
        using T = decltype(zero);
        const T* const x = static_cast<const T*>(in.data);
        T* const y = static_cast<T*>(out.data);
        if (lines.count * lines.length == 0) {
            kernel = make_kernel([](const StepContext&) {});
        } else if (forward) {
            const auto run = wide ? softmax<T, 32, kLog> : softmax<T, 1, kLog>;
            kernel =
                make_kernel([&device, run, grid, lines, x, y](const StepContext&) { launch(device, run, grid, kThreads, lines, x, y); });
        } else {
            const auto run = wide ? softmax_grad<T, 32, kLog> : softmax_grad<T, 1, kLog>;
            const T* const dy = data_of<const T>(request, step.inputs[1]);
            kernel = make_kernel(
                [&device, run, grid, lines, x, dy, y](const StepContext&) { launch(device, run, grid, kThreads, lines, x, dy, y); });
        }
    });
    return kernel;
}

}  // namespace

Family softmax_family() {
    return {"softmax",
            {{accepts<SoftmaxOp, SoftmaxGradOp>, candidates, prepare<SoftmaxOp, SoftmaxGradOp, false>},
             {accepts<LogSoftmaxOp, LogSoftmaxGradOp>, candidates, prepare<LogSoftmaxOp, LogSoftmaxGradOp, true>}}};
}

}  // namespace convoy::cuda
