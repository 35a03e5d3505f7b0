// Losses: cross-entropy and its gradient from the logits in one pass each, squared and absolute errors, and what is counted beside them.
#include <limits>

#include "kernels/cuda/family.h"
#include "kernels/cuda/lines.cuh"
#include "kernels/cuda/sum.cuh"

namespace convoy::cuda {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// What both directions of cross-entropy read.
template <class T>
struct CrossEntropy {
    using W = Wide<T>;
    Lines lines;
    const T* logits;
    const int32_t* target;
    const W *weights, *normaliser;  // may be none
    double smoothing, scale;

    __device__ double weight(int64_t k) const { return weights ? static_cast<double>(weights[k]) : 1.0; }
    __device__ double full_scale() const { return normaliser ? scale / static_cast<double>(normaliser[0]) : scale; }
    __device__ bool is_class(int64_t t) const { return t >= 0 && t < lines.length; }
};

template <class T, int kWarp>
struct CrossEntropySum : CrossEntropy<T> {
    static constexpr int kLanes = kWarp;
    Wide<T>* loss;

    __device__ double operator()(int64_t i, int lane) const {
        const T* const line = this->logits + this->lines.first(i);
        const auto e = exponentials<kWarp>(this->lines, line, lane);
        const double log_sum = static_cast<double>(e.largest) + log(static_cast<double>(e.sum));
        const int64_t t = this->target[i];
        double spread = 0;
        if (this->smoothing != 0)
            for (int64_t k = lane; k < this->lines.length; k += kWarp)
                spread += this->weight(k) * (log_sum - static_cast<double>(widen(line[k * this->lines.stride])));
        spread = lanes_sum<kWarp>(spread);
        if (!this->is_class(t)) return kNaN;
        double result = this->weight(t) * (1 - this->smoothing) * (log_sum - static_cast<double>(widen(line[t * this->lines.stride])));
        if (this->smoothing != 0) result += this->smoothing / static_cast<double>(this->lines.length) * spread;
        return result;
    }
    __device__ void finish(double sum) const { loss[0] = static_cast<Wide<T>>(this->full_scale() * sum); }
};

template <class T, int kLanes>
__global__ void __launch_bounds__(kThreads) cross_entropy_grad(CrossEntropy<T> ce, T* dlogits) {
    using W = Wide<T>;
    const int64_t thread = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x,
                  step = static_cast<int64_t>(gridDim.x) * blockDim.x / kLanes;
    const int lane = static_cast<int>(thread % kLanes);
    const double spread = ce.smoothing / static_cast<double>(ce.lines.length), scale = ce.full_scale();
    double weight_sum = 0;
    if (spread != 0)
        for (int64_t k = 0; k < ce.lines.length; ++k) weight_sum += ce.weight(k);
    for (int64_t i = thread / kLanes; i < ce.lines.count; i += step) {
        const int64_t first = ce.lines.first(i), t = ce.target[i];
        const auto e = exponentials<kLanes>(ce.lines, ce.logits + first, lane);
        const double own = ce.is_class(t) ? ce.weight(t) * (1 - ce.smoothing) : kNaN;
        const W factor = static_cast<W>(scale * (own + spread * weight_sum)) / e.sum;
        for (int64_t k = lane; k < ce.lines.length; k += kLanes) {
            const int64_t at = first + k * ce.lines.stride;
            const W q = static_cast<W>(scale * (spread * ce.weight(k) + (k == t ? own : 0)));
            dlogits[at] = narrow<T>(factor * exp(widen(ce.logits[at]) - e.largest) - q);
        }
    }
}

template <class T, int kWarp>
struct CorrectSum {
    static constexpr int kLanes = kWarp;
    Lines lines;
    const T* logits;
    const int32_t* target;
    Wide<T>* count;
    __device__ double operator()(int64_t i, int lane) const {
        const T* const line = logits + lines.first(i);
        int largest = 0;
        Wide<T> best = widen(line[0]);
        for (int64_t k = lane; k < lines.length; k += kLanes) {
            const Wide<T> value = widen(line[k * lines.stride]);
            if (!(value > best)) continue;
            best = value;
            largest = static_cast<int>(k);
        }
        if constexpr (kLanes == 32)
            for (int step = 16; step > 0; step /= 2) {
                const Wide<T> other = __shfl_xor_sync(0xffffffffu, best, step);
                const int at = __shfl_xor_sync(0xffffffffu, largest, step);
                if (!(other > best) && !(other == best && at < largest)) continue;  // the first of equals
                best = other;
                largest = at;
            }
        return largest == target[i] ? 1 : 0;
    }
    __device__ void finish(double sum) const { count[0] = static_cast<Wide<T>>(sum); }
};

template <class W>
struct TargetWeightSum {
    static constexpr int kLanes = 1;
    const int32_t* target;
    const W* weights;
    int64_t classes;
    W* result;
    __device__ double operator()(int64_t i, int) const {
        return target[i] >= 0 && target[i] < classes ? static_cast<double>(weights[target[i]]) : kNaN;
    }
    __device__ void finish(double sum) const { result[0] = static_cast<W>(sum); }
};

template <class T>
struct ErrorSum {
    static constexpr int kLanes = 1;
    const T *x, *target;
    bool squared;
    double scale;
    Wide<T>* loss;
    __device__ double operator()(int64_t i, int) const {
        const double error = static_cast<double>(widen(x[i])) - static_cast<double>(widen(target[i]));
        return squared ? error * error : fabs(error);
    }
    __device__ void finish(double sum) const { loss[0] = static_cast<Wide<T>>(scale * sum); }
};

template <class T>
__global__ void error_grad(const T* x, const T* target, T* dx, bool squared, double scale, int64_t count) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
        const double error = static_cast<double>(widen(x[i])) - static_cast<double>(widen(target[i]));
        dx[i] = narrow<T>(static_cast<Wide<T>>(scale * (squared ? 2 * error : error > 0 ? 1.0 : error < 0 ? -1.0 : error)));
    }
}

// --- Cases ----------------------------------------------------------------------------------------------------------------------

template <class T>
CrossEntropy<T> cross_entropy_of(const KernelRequest& request, double smoothing, double scale) {
    const auto& in = request.problem.steps[0].inputs;
    const Operand& logits = operand(request, in[0]);
    return {lines_of_channels(logits.desc.shape, logits.layout),
            static_cast<const T*>(logits.data),
            data_of<const int32_t>(request, in[1]),
            in.size() > 2 ? data_of<const Wide<T>>(request, in[2]) : nullptr,
            in.size() > 3 ? data_of<const Wide<T>>(request, in[3]) : nullptr,
            smoothing,
            scale};
}

bool accepts_cross_entropy(const Problem& p) { return steps_are<CrossEntropyOp>(p); }
std::vector<Candidate> logits_candidates(const Problem& p) { return in_each_layout(p, {input_of(p, 0, 0)}, {}, kSumWorkspace); }
std::unique_ptr<Kernel> prepare_cross_entropy(const KernelRequest& request, Device& device) {
    const auto& step = request.problem.steps[0];
    const auto& op = std::get<CrossEntropyOp>(step.op);
    std::unique_ptr<Kernel> kernel;
    with_floating(dtype_of(request, step.inputs[0]), [&](auto zero) {
        using T = decltype(zero);
        const auto ce = cross_entropy_of<T>(request, op.label_smoothing, op.scale);
        auto* const loss = data_of<Wide<T>>(request, step.outputs[0]);
        const auto summed = [&](const auto& sum) {
            return make_kernel([&device, sum, count = ce.lines.count, workspace = request.workspace](const StepContext&) {
                start_sum(device, sum, count, workspace);
            });
        };
        kernel = wide_lines(ce.lines) ? summed(CrossEntropySum<T, 32>{ce, loss}) : summed(CrossEntropySum<T, 1>{ce, loss});
    });
    return kernel;
}

bool accepts_cross_entropy_grad(const Problem& p) { return steps_are<CrossEntropyGradOp>(p); }
std::vector<Candidate> cross_entropy_grad_candidates(const Problem& p) { return in_each_layout(p, {input_of(p, 0, 0), output_of(p, 0)}); }
std::unique_ptr<Kernel> prepare_cross_entropy_grad(const KernelRequest& request, Device& device) {
    const auto& step = request.problem.steps[0];
    const auto& op = std::get<CrossEntropyGradOp>(step.op);
    std::unique_ptr<Kernel> kernel;
    with_floating(dtype_of(request, step.inputs[0]), [&](auto zero) {
        using T = decltype(zero);
        const auto ce = cross_entropy_of<T>(request, op.label_smoothing, op.scale);
        const bool wide = wide_lines(ce.lines);
        const auto run = wide ? cross_entropy_grad<T, 32> : cross_entropy_grad<T, 1>;
        kernel = make_kernel([&device, run, ce, grid = grid_for(ce.lines.count * (wide ? 32 : 1)),
                              dlogits = data_of<T>(request, step.outputs[0])](const StepContext&) {
            if (ce.lines.count > 0) launch(device, run, grid, kThreads, ce, dlogits);
        });
    });
    return kernel;
}

bool accepts_correct(const Problem& p) { return steps_are<CorrectOp>(p); }
std::unique_ptr<Kernel> prepare_correct(const KernelRequest& request, Device& device) {
    const auto& step = request.problem.steps[0];
    const Operand& logits = operand(request, step.inputs[0]);
    std::unique_ptr<Kernel> kernel;
    with_floating(logits.desc.dtype, [&](auto zero) {
        using T = decltype(zero);
        const Lines lines = lines_of_channels(logits.desc.shape, logits.layout);
        const T* const data = static_cast<const T*>(logits.data);
        const auto* const target = data_of<const int32_t>(request, step.inputs[1]);
        auto* const count = data_of<Wide<T>>(request, step.outputs[0]);
        const auto summed = [&](const auto& sum) {
            return make_kernel(
                [&device, sum, workspace = request.workspace](const StepContext&) { start_sum(device, sum, sum.lines.count, workspace); });
        };
        kernel = wide_lines(lines) ? summed(CorrectSum<T, 32>{lines, data, target, count})
                                   : summed(CorrectSum<T, 1>{lines, data, target, count});
    });
    return kernel;
}

bool accepts_target_weight(const Problem& p) { return steps_are<TargetWeightOp>(p); }
std::vector<Candidate> sum_candidate(const Problem& p) { return only_plain(p, {}, kSumWorkspace); }
std::unique_ptr<Kernel> prepare_target_weight(const KernelRequest& request, Device& device) {
    const auto& step = request.problem.steps[0];
    const Operand &target = operand(request, step.inputs[0]), &weights = operand(request, step.inputs[1]);
    std::unique_ptr<Kernel> kernel;
    with_floating(weights.desc.dtype, [&](auto zero) {
        using W = Wide<decltype(zero)>;
        const TargetWeightSum<W> sum{static_cast<const int32_t*>(target.data), static_cast<const W*>(weights.data), weights.desc.shape[0],
                                     data_of<W>(request, step.outputs[0])};
        kernel = make_kernel([&device, sum, count = numel(target.desc.shape), workspace = request.workspace](const StepContext&) {
            start_sum(device, sum, count, workspace);
        });
    });
    return kernel;
}

bool accepts_error(const Problem& p) { return steps_are<ErrorLossOp>(p); }
std::unique_ptr<Kernel> prepare_error(const KernelRequest& request, Device& device) {
    const auto& step = request.problem.steps[0];
    const auto& op = std::get<ErrorLossOp>(step.op);
    const Operand& x = operand(request, step.inputs[0]);
    std::unique_ptr<Kernel> kernel;
    with_floating(x.desc.dtype, [&](auto zero) {
        using T = decltype(zero);
        const ErrorSum<T> sum{static_cast<const T*>(x.data), data_of<const T>(request, step.inputs[1]), op.kind == ErrorKind::Squared,
                              op.scale, data_of<Wide<T>>(request, step.outputs[0])};
        kernel = make_kernel([&device, sum, count = numel(x.desc.shape), workspace = request.workspace](const StepContext&) {
            start_sum(device, sum, count, workspace);
        });
    });
    return kernel;
}

bool accepts_error_grad(const Problem& p) { return steps_are<ErrorLossGradOp>(p); }
std::vector<Candidate> alike_candidate(const Problem& p) { return in_any_one_layout(p); }
std::unique_ptr<Kernel> prepare_error_grad(const KernelRequest& request, Device& device) {
    const auto& step = request.problem.steps[0];
    const auto& op = std::get<ErrorLossGradOp>(step.op);
    const Operand& x = operand(request, step.inputs[0]);
    std::unique_ptr<Kernel> kernel;
    with_floating(x.desc.dtype, [&](auto zero) {
        using T = decltype(zero);
        kernel = make_kernel([&device, squared = op.kind == ErrorKind::Squared, scale = op.scale, count = numel(x.desc.shape),
                              in = static_cast<const T*>(x.data), target = data_of<const T>(request, step.inputs[1]),
                              dx = data_of<T>(request, step.outputs[0])](const StepContext&) {
            if (count > 0) launch(device, error_grad<T>, grid_for(count), kThreads, in, target, dx, squared, scale, count);
        });
    });
    return kernel;
}

}  // namespace

Family loss_family() {
    return {"loss",
            {{accepts_cross_entropy, logits_candidates, prepare_cross_entropy},
             {accepts_cross_entropy_grad, cross_entropy_grad_candidates, prepare_cross_entropy_grad},
             {accepts_correct, logits_candidates, prepare_correct},
             {accepts_target_weight, sum_candidate, prepare_target_weight},
             {accepts_error, sum_candidate, prepare_error},
             {accepts_error_grad, alike_candidate, prepare_error_grad}}};
}

}  // namespace convoy::cuda
