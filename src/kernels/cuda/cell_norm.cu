// Group norm and layer norm, on plain tensors. A cell is contiguous in both; a block has one.
#include "kernels/cuda/family.h"
#include "kernels/cuda/launch.cuh"

namespace convoy::cuda {

namespace {

// Group norm's view of x: [samples, channels, inner], a cell being channels/groups adjacent channels of one sample. Layer norm is the same with one
// group, the cells as samples, and each element of a cell a channel of its own.
struct CellView {
    int64_t samples, channels, inner, groups;
    __host__ __device__ int64_t count() const { return samples * groups; }
    __host__ __device__ int64_t width() const { return channels / groups; }
    __host__ __device__ int64_t size() const { return width() * inner; }
    // The channel of the i-th element of a cell.
    __device__ int64_t channel(int64_t cell, int64_t i) const { return cell % groups * width() + i / inner; }
};
CellView view_of(const Cells& cells, const Shape& x, int64_t count) {
    if (cells.groups == 0) return {count, product(x, cells.axis, x.size()), 1, 1};
    return {x[0], x[1], product(x, 2, x.size()), x[0] > 0 ? count / x[0] : 1};
}

template <class T>
struct CellArgs {
    using W = Wide<T>;
    CellView view;
    const T *x, *dy;
    const W *stats, *gamma, *beta, *sums;
    T* out;
    W *first, *second;      // results that are numbers per cell or channel
    double epsilon, whole;  // elements of a whole cell, of which x may be a part

    __device__ double mean(int64_t cell) const { return static_cast<double>(stats[cell]); }
    __device__ double rstd(int64_t cell) const { return 1 / sqrt(static_cast<double>(stats[view.count() + cell]) + epsilon); }
};

template <class T>
__global__ void __launch_bounds__(kThreads) cell_stats(CellArgs<T> a) {
    const int64_t cell = blockIdx.x, size = a.view.size();
    const T* const x = a.x + cell * size;
    __shared__ double mean;
    double sum = 0;
    for (int64_t i = threadIdx.x; i < size; i += blockDim.x) sum += static_cast<double>(widen(x[i]));
    sum = block_sum(sum);
    if (threadIdx.x == 0) mean = sum / static_cast<double>(size);
    __syncthreads();
    double squares = 0;
    for (int64_t i = threadIdx.x; i < size; i += blockDim.x) {
        const double off = static_cast<double>(widen(x[i])) - mean;
        squares += off * off;
    }
    squares = block_sum(squares);
    if (threadIdx.x != 0) return;
    a.first[cell] = static_cast<Wide<T>>(mean);
    a.first[a.view.count() + cell] = static_cast<Wide<T>>(squares / static_cast<double>(size));
}

template <class T>
__global__ void __launch_bounds__(kThreads) cell_normalize(CellArgs<T> a) {
    using W = Wide<T>;
    const int64_t cell = blockIdx.x, size = a.view.size();
    const W mean = static_cast<W>(a.mean(cell)), rstd = static_cast<W>(a.rstd(cell));
    for (int64_t i = threadIdx.x; i < size; i += blockDim.x) {
        const int64_t c = a.view.channel(cell, i);
        a.out[cell * size + i] = narrow<T>((widen(a.x[cell * size + i]) - mean) * rstd * a.gamma[c] + a.beta[c]);
    }
}

// A block has one channel.
template <class T>
__global__ void __launch_bounds__(kThreads) cell_grad_affine(CellArgs<T> a) {
    const int64_t c = blockIdx.x;
    double gamma_sum = 0, beta_sum = 0;
    for (int64_t j = threadIdx.x; j < a.view.samples * a.view.inner; j += blockDim.x) {
        const int64_t n = j / a.view.inner, i = (n * a.view.channels + c) * a.view.inner + j % a.view.inner;
        const int64_t cell = n * a.view.groups + c / a.view.width();
        const double dy = static_cast<double>(widen(a.dy[i]));
        gamma_sum += dy * (static_cast<double>(widen(a.x[i])) - a.mean(cell)) * a.rstd(cell);
        beta_sum += dy;
    }
    gamma_sum = block_sum(gamma_sum);
    beta_sum = block_sum(beta_sum);
    if (threadIdx.x != 0) return;
    a.first[c] = static_cast<Wide<T>>(gamma_sum);
    a.second[c] = static_cast<Wide<T>>(beta_sum);
}

template <class T>
__global__ void __launch_bounds__(kThreads) cell_grad_sums(CellArgs<T> a) {
    const int64_t cell = blockIdx.x, size = a.view.size();
    const double mean = a.mean(cell), rstd = a.rstd(cell);
    double plain = 0, weighted = 0;
    for (int64_t i = threadIdx.x; i < size; i += blockDim.x) {
        const double term = static_cast<double>(a.gamma[a.view.channel(cell, i)]) * static_cast<double>(widen(a.dy[cell * size + i]));
        plain += term;
        weighted += term * (static_cast<double>(widen(a.x[cell * size + i])) - mean) * rstd;
    }
    plain = block_sum(plain);
    weighted = block_sum(weighted);
    if (threadIdx.x != 0) return;
    a.first[cell] = static_cast<Wide<T>>(plain);
    a.first[a.view.count() + cell] = static_cast<Wide<T>>(weighted);
}

// dx = rstd*(gamma*dy - sums0/size - xhat*sums1/size), with xhat = (x - mean)*rstd.
template <class T>
__global__ void __launch_bounds__(kThreads) cell_grad_input(CellArgs<T> a) {
    using W = Wide<T>;
    const int64_t cell = blockIdx.x, size = a.view.size();
    const double rstd64 = a.rstd(cell);
    const W mean = static_cast<W>(a.mean(cell)), rstd = static_cast<W>(rstd64);
    const W shift = static_cast<W>(static_cast<double>(a.sums[cell]) / a.whole);
    const W slope = static_cast<W>(rstd64 * static_cast<double>(a.sums[a.view.count() + cell]) / a.whole);
    for (int64_t i = threadIdx.x; i < size; i += blockDim.x) {
        const int64_t at = cell * size + i;
        a.out[at] = narrow<T>(rstd * (a.gamma[a.view.channel(cell, i)] * widen(a.dy[at]) - shift - (widen(a.x[at]) - mean) * slope));
    }
}

// --- Cases ----------------------------------------------------------------------------------------------------------------------

// The operands of each op, by what they are.
struct CellOperands {
    Cells cells;
    double epsilon = 0;
    int x = kNoTensor, dy = kNoTensor, stats = kNoTensor, gamma = kNoTensor, beta = kNoTensor, sums = kNoTensor;  // numbers of inputs
};
std::optional<CellOperands> operands_of(const Op& op) {
    if (const auto* o = std::get_if<CellStatsOp>(&op)) return CellOperands{.cells = o->cells, .x = 0};
    if (const auto* o = std::get_if<CellNormalizeOp>(&op)) return CellOperands{o->cells, o->epsilon, 0, kNoTensor, 1, 2, 3};
    if (const auto* o = std::get_if<CellNormGradAffineOp>(&op)) return CellOperands{o->cells, o->epsilon, 0, 1, 2};
    if (const auto* o = std::get_if<CellNormGradSumsOp>(&op)) return CellOperands{o->cells, o->epsilon, 0, 1, 2, 3};
    if (const auto* o = std::get_if<CellNormGradInputOp>(&op)) return CellOperands{o->cells, o->epsilon, 0, 1, 2, 3, kNoTensor, 4};
    return std::nullopt;
}

bool accepts(const Problem& p) { return p.steps.size() == 1 && operands_of(p.steps[0].op).has_value(); }
std::vector<Candidate> candidates(const Problem& p) { return only_plain(p); }
std::unique_ptr<Kernel> prepare(const KernelRequest& request, Device& device) {
    const auto& step = request.problem.steps[0];
    const auto o = *operands_of(step.op);
    const Operand& x = operand(request, step.inputs[0]);
    const Operand& stats = o.stats == kNoTensor ? request.outputs[0] : operand(request, step.inputs[static_cast<size_t>(o.stats)]);
    std::unique_ptr<Kernel> kernel;
    with_floating(x.desc.dtype, [&](auto zero) {
        using T = decltype(zero);
        using W = Wide<T>;
        const auto wide = [&](int i) { return i == kNoTensor ? nullptr : data_of<const W>(request, step.inputs[static_cast<size_t>(i)]); };
        CellArgs<T> a{};
        a.view = view_of(o.cells, x.desc.shape, stats.desc.shape[1]);
        a.x = static_cast<const T*>(x.data);
        if (o.dy != kNoTensor) a.dy = data_of<const T>(request, step.inputs[static_cast<size_t>(o.dy)]);
        a.stats = wide(o.stats);
        a.gamma = wide(o.gamma);
        a.beta = wide(o.beta);
        a.sums = wide(o.sums);
        a.epsilon = o.epsilon;
        a.whole = static_cast<double>(numel(x.desc.global) / std::max<int64_t>(1, stats.desc.global[1]));
        if (std::holds_alternative<CellNormalizeOp>(step.op) || std::holds_alternative<CellNormGradInputOp>(step.op))
            a.out = data_of<T>(request, step.outputs[0]);
        else
            a.first = data_of<W>(request, step.outputs[0]);
        if (step.outputs.size() > 1) a.second = data_of<W>(request, step.outputs[1]);
        int64_t blocks = a.view.count();
        void (*run)(CellArgs<T>) = cell_stats<T>;
        if (std::holds_alternative<CellNormalizeOp>(step.op)) run = cell_normalize<T>;
        if (std::holds_alternative<CellNormGradSumsOp>(step.op)) run = cell_grad_sums<T>;
        if (std::holds_alternative<CellNormGradInputOp>(step.op)) run = cell_grad_input<T>;
        if (std::holds_alternative<CellNormGradAffineOp>(step.op)) {
            run = cell_grad_affine<T>;
            blocks = a.view.channels;
        }
        kernel = make_kernel([&device, run, a, blocks](const StepContext&) {
            if (blocks > 0) launch(device, run, dim3(static_cast<unsigned>(blocks)), kThreads, a);
        });
    });
    return kernel;
}

}  // namespace

Family cell_norm_family() { return {"cell-norm", {{accepts, candidates, prepare}}}; }

}  // namespace convoy::cuda
