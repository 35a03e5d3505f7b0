// Local response normalisation over neighbouring channels, and its gradient.
#include "kernels/cuda/family.h"
#include "kernels/cuda/lines.cuh"

namespace convoy::cuda {

namespace {

struct Lrn {
    Lines lines;  // along the channels
    int64_t size;
    double alpha, beta, k;
};

// The base of the denominator at channel c of a line.
template <class T>
__device__ Wide<T> base_of(const Lrn& o, const T* line, int64_t c) {
    using W = Wide<T>;
    const int64_t first = max(c - o.size / 2, int64_t{0}), last = min(c - o.size / 2 + o.size, o.lines.length);
    W squares = 0;
    for (int64_t i = first; i < last; ++i) {
        const W value = widen(line[i * o.lines.stride]);
        squares += value * value;
    }
    return static_cast<W>(o.k) + static_cast<W>(o.alpha / static_cast<double>(o.size)) * squares;
}

// The line and channel of element i, counted so that neighbouring threads have neighbouring memory.
struct Element {
    int64_t line, c;
};
__device__ Element element_of(const Lines& lines, int64_t i) {
    if (lines.stride == 1) return {i / lines.length, i % lines.length};
    const int64_t rest = i / lines.inner;
    return {rest / lines.length * lines.inner + i % lines.inner, rest % lines.length};
}

template <class T>
__global__ void __launch_bounds__(kThreads) lrn(Lrn o, const T* x, T* y) {
    const int64_t count = o.lines.count * o.lines.length, step = static_cast<int64_t>(gridDim.x) * blockDim.x;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
        const auto [line, c] = element_of(o.lines, i);
        const int64_t first = o.lines.first(line), at = first + c * o.lines.stride;
        y[at] = narrow<T>(widen(x[at]) * pow(base_of(o, x + first, c), static_cast<Wide<T>>(-o.beta)));
    }
}

template <class T>
__global__ void __launch_bounds__(kThreads) lrn_grad(Lrn o, const T* x, const T* dy, T* dx) {
    using W = Wide<T>;
    const int64_t count = o.lines.count * o.lines.length, step = static_cast<int64_t>(gridDim.x) * blockDim.x;
    const W factor = static_cast<W>(2 * o.beta * o.alpha / static_cast<double>(o.size));
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
        const auto [line, c] = element_of(o.lines, i);
        const int64_t start = o.lines.first(line), at = start + c * o.lines.stride;
        // The windows that have c in them: the mirror image of the window of c.
        const int64_t first = max(c + o.size / 2 - o.size + 1, int64_t{0}), last = min(c + o.size / 2 + 1, o.lines.length);
        W own = 0, through = 0;
        for (int64_t j = first; j < last; ++j) {
            const W base = base_of(o, x + start, j), power = pow(base, static_cast<W>(-o.beta));
            const W dy_j = widen(dy[start + j * o.lines.stride]);
            through += dy_j * widen(x[start + j * o.lines.stride]) * power / base;
            if (j == c) own = dy_j * power;
        }
        dx[at] = narrow<T>(own - factor * widen(x[at]) * through);
    }
}

bool accepts(const Problem& p) { return steps_are<LrnOp>(p) || steps_are<LrnGradOp>(p); }
std::vector<Candidate> candidates(const Problem& p) {
    std::vector<int> activations{output_of(p, 0)};
    for (const int t : p.steps[0].inputs) activations.push_back(t);
    return in_each_layout(p, activations);
}
std::unique_ptr<Kernel> prepare(const KernelRequest& request, Device& device) {
    const auto& step = request.problem.steps[0];
    const Operand& x = operand(request, step.inputs[0]);
    const Lines lines = lines_of_channels(x.desc.shape, x.layout);
    const auto* const forward = std::get_if<LrnOp>(&step.op);
    const auto settings = [&](const auto& op) { return Lrn{lines, op.size, op.alpha, op.beta, op.k}; };
    const Lrn o = forward ? settings(*forward) : settings(std::get<LrnGradOp>(step.op));
    const int64_t count = numel(x.desc.shape);
    std::unique_ptr<Kernel> kernel;
    with_floating(x.desc.dtype, [&](auto zero) {
        using T = decltype(zero);
        const T* const in = static_cast<const T*>(x.data);
        T* const out = data_of<T>(request, step.outputs[0]);
        const T* const dy = forward ? nullptr : data_of<const T>(request, step.inputs[1]);
        kernel = make_kernel([&device, o, in, out, dy, count](const StepContext&) {
            if (count == 0) return;
            if (dy)
                launch(device, lrn_grad<T>, grid_for(count), kThreads, o, in, dy, out);
            else
                launch(device, lrn<T>, grid_for(count), kThreads, o, in, out);
        });
    });
    return kernel;
}

}  // namespace

Family lrn_family() { return {"lrn", {{accepts, candidates, prepare}}}; }

}  // namespace convoy::cuda
