// Batch norm: statistics; normalising with what follows it (a sum, a ReLU); the gradients, which may see dy through that ReLU. Also the small ops
// around them, on numbers per channel alone.
#include "kernels/cuda/channel_pass.cuh"
#include "kernels/cuda/family.h"

namespace convoy::cuda {

namespace {

// --- Passes ---------------------------------------------------------------------------------------------------------------------

// Sums of x - shift and of its square, the shift being an element of the channel, so that a large mean cancels nothing.
template <class T>
struct StatsPass {
    using Element = T;
    using W = Wide<T>;
    static constexpr int kIn = 1, kSums = 2;
    static constexpr bool kWrites = false;
    const T* in[1];
    T* out;
    int64_t inner, channels, count;
    W* stats;

    struct Param {
        W shift;
    };
    __device__ Param param(int64_t c) const { return {count > 0 ? widen(in[0][c * inner]) : W{0}}; }
    __device__ W apply(const Param& p, const W (&x)[1], W (&sums)[3]) const {
        const W off = x[0] - p.shift;
        sums[0] += off;
        sums[1] += off * off;
        return 0;
    }
    __device__ void finish(int64_t c, const double (&sums)[2]) const {
        const double off = sums[0] / static_cast<double>(count), variance = sums[1] / static_cast<double>(count) - off * off;
        stats[c] = static_cast<W>(static_cast<double>(param(c).shift) + off);
        stats[channels + c] = static_cast<W>(variance < 0 ? 0.0 : variance);  // a NaN stays one
    }
};

// What batch norm knows of a channel.
template <class W>
struct Affine {
    W mean, scale, shift;
};
template <class W>
struct Channels {
    const W *stats, *gamma, *beta;
    int64_t channels;
    double epsilon;

    __device__ W rstd(int64_t c) const { return W{1} / sqrt(stats[channels + c] + static_cast<W>(epsilon)); }
    __device__ Affine<W> affine(int64_t c) const { return {stats[c], rstd(c) * gamma[c], beta ? beta[c] : W{0}}; }
};

template <class W>
__device__ __forceinline__ W normalized(const Affine<W>& p, W x) {
    return (x - p.mean) * p.scale + p.shift;
}
template <class W>
__device__ __forceinline__ W relu(W x) {
    return x <= 0 ? W{0} : x;
}

template <class T, bool kAdds, bool kRelu>
struct NormalizePass {
    using Element = T;
    using W = Wide<T>;
    static constexpr int kIn = kAdds ? 2 : 1, kSums = 0;
    static constexpr bool kWrites = true;
    const T* in[kIn];  // x, and what is added
    T* out;
    Channels<W> channels;

    using Param = Affine<W>;
    __device__ Param param(int64_t c) const { return channels.affine(c); }
    __device__ W apply(const Param& p, const W (&x)[kIn], W (&)[1]) const {
        W y = normalized(p, x[0]);
        if constexpr (kAdds) y += x[kIn - 1];
        return kRelu ? relu(y) : y;
    }
};

// d, which is dy through the ReLU if there was one.
template <class T, Masked kMask, class W, int N>
__device__ __forceinline__ W masked(const Affine<W>& p, const W (&in)[N]) {
    if constexpr (kMask == Masked::ByOutput) return in[N - 1] <= 0 ? W{0} : in[1];
    if constexpr (kMask == Masked::ByNormalized) return normalized(p, in[0]) <= 0 ? W{0} : in[1];
    return in[1];
}

template <class T, Masked kMask>
struct GradSumsPass {
    using Element = T;
    using W = Wide<T>;
    static constexpr int kIn = kMask == Masked::ByOutput ? 3 : 2, kSums = 2;
    static constexpr bool kWrites = kMask == Masked::ByOutput;
    const T* in[kIn];  // x, dy, y
    T* out;            // d
    Channels<W> channels;
    W *dgamma, *dbeta;

    using Param = Affine<W>;
    __device__ Param param(int64_t c) const {
        if constexpr (kMask == Masked::ByNormalized) return channels.affine(c);
        return {channels.stats[c], 0, 0};
    }
    __device__ W apply(const Param& p, const W (&x)[kIn], W (&sums)[3]) const {
        const W d = masked<T, kMask>(p, x);
        sums[0] += d;
        sums[1] += d * (x[0] - p.mean);
        return d;
    }
    __device__ void finish(int64_t c, const double (&sums)[2]) const {
        dbeta[c] = static_cast<W>(sums[0]);
        dgamma[c] = static_cast<W>(static_cast<double>(channels.rstd(c)) * sums[1]);
    }
};

// The same for dy in two parts.
template <class T>
struct GradSumsOfSumPass {
    using Element = T;
    using W = Wide<T>;
    static constexpr int kIn = 4, kSums = 2;
    static constexpr bool kWrites = true;
    const T* in[4];  // x, one dy, y, the other dy
    T* out;          // d
    GradSumsPass<T, Masked::ByOutput> pass;

    using Param = Affine<W>;
    __device__ Param param(int64_t c) const { return pass.param(c); }
    __device__ W apply(const Param& p, const W (&x)[4], W (&sums)[3]) const {
        const W joined[3] = {x[0], x[1] + x[3], x[2]};
        return pass.apply(p, joined, sums);
    }
    __device__ void finish(int64_t c, const double (&sums)[2]) const { pass.finish(c, sums); }
};

template <class T, Masked kMask>
struct GradInputPass {
    using Element = T;
    using W = Wide<T>;
    static constexpr int kIn = 2, kSums = 0;
    static constexpr bool kWrites = true;
    const T* in[2];  // x, dy
    T* out;
    Channels<W> channels;
    const W *dgamma, *dbeta;
    double count;

    struct Param {
        Affine<W> affine;
        W level, slope;
    };
    __device__ Param param(int64_t c) const {
        return {channels.affine(c), dbeta[c] / static_cast<W>(count), channels.rstd(c) * dgamma[c] / static_cast<W>(count)};
    }
    __device__ W apply(const Param& p, const W (&x)[2], W (&)[1]) const {
        return p.affine.scale * (masked<T, kMask>(p.affine, x) - p.level - (x[0] - p.affine.mean) * p.slope);
    }
};

template <class T>
struct FixedGradInputPass {
    using Element = T;
    using W = Wide<T>;
    static constexpr int kIn = 1, kSums = 0;
    static constexpr bool kWrites = true;
    const T* in[1];  // dy
    T* out;
    Channels<W> channels;

    struct Param {
        W scale;
    };
    __device__ Param param(int64_t c) const { return {channels.rstd(c) * channels.gamma[c]}; }
    __device__ W apply(const Param& p, const W (&dy)[1], W (&)[1]) const { return p.scale * dy[0]; }
};

// --- Cases ----------------------------------------------------------------------------------------------------------------------

// The most that any layout needs for two sums per channel.
int64_t sums_workspace(const TensorDesc& x) {
    int64_t bytes = 0;
    for (const Layout& layout : activation_layouts(x.shape))
        bytes = std::max(bytes, plan_channels(channel_view(x.shape, layout), x.dtype, true).workspace_bytes(2));
    return bytes;
}

ChannelPlan plan_of(const KernelRequest& request, int tensor, bool sums) {
    const Operand& o = operand(request, tensor);
    return plan_channels(channel_view(o.desc.shape, o.layout), o.desc.dtype, sums);
}

template <class W>
Channels<W> channels_of(const KernelRequest& request, int stats, int gamma, int beta, double epsilon) {
    const auto at = [&](int t) { return t == kNoTensor ? nullptr : data_of<const W>(request, t); };
    return {at(stats), at(gamma), at(beta), operand(request, stats).desc.shape[1], epsilon};
}

bool accepts_stats(const Problem& p) { return steps_are<BatchStatsOp>(p); }
std::vector<Candidate> stats_candidates(const Problem& p) { return in_each_layout(p, {0}, {}, sums_workspace(p.tensors[0])); }
std::unique_ptr<Kernel> prepare_stats(const KernelRequest& request, Device& device) {
    std::unique_ptr<Kernel> kernel;
    with_floating(dtype_of(request, 0), [&](auto zero) {
        using T = decltype(zero);
        const ChannelPlan plan = plan_of(request, 0, true);
        kernel = pass_kernel(device, plan,
                             StatsPass<T>{{data_of<const T>(request, 0)},
                                          nullptr,
                                          plan.view.inner,
                                          plan.view.channels,
                                          plan.view.per_channel(),
                                          data_of<Wide<T>>(request, 1)},
                             request.workspace);
    });
    return kernel;
}

bool accepts_normalizing(const Problem& p) { return normalizing(p).has_value(); }
std::vector<Candidate> normalizing_candidates(const Problem& p) {
    const auto n = *normalizing(p);
    std::vector<int> activations{n.x, n.y};
    std::vector<std::pair<int, int>> in_place{{n.y, n.x}};
    if (n.other != kNoTensor) {
        activations.push_back(n.other);
        in_place.emplace_back(n.y, n.other);
    }
    return in_each_layout(p, activations, in_place);
}
std::unique_ptr<Kernel> prepare_normalizing(const KernelRequest& request, Device& device) {
    const auto n = *normalizing(request.problem);
    std::unique_ptr<Kernel> kernel;
    with_floating(dtype_of(request, n.x), [&](auto zero) {
        using T = decltype(zero);
        const ChannelPlan plan = plan_of(request, n.x, false);
        const auto channels = channels_of<Wide<T>>(request, n.stats, n.gamma, n.beta, n.epsilon);
        const T* const x = data_of<const T>(request, n.x);
        T* const y = data_of<T>(request, n.y);
        if (n.other == kNoTensor) {
            kernel = n.relu ? pass_kernel(device, plan, NormalizePass<T, false, true>{{x}, y, channels}, nullptr)
                            : pass_kernel(device, plan, NormalizePass<T, false, false>{{x}, y, channels}, nullptr);
            return;
        }
        const T* const other = data_of<const T>(request, n.other);
        kernel = n.relu ? pass_kernel(device, plan, NormalizePass<T, true, true>{{x, other}, y, channels}, nullptr)
                        : pass_kernel(device, plan, NormalizePass<T, true, false>{{x, other}, y, channels}, nullptr);
    });
    return kernel;
}

bool accepts_sums(const Problem& p) { return norm_grad_sums(p).has_value(); }
std::vector<Candidate> sums_candidates(const Problem& p) {
    const auto m = *norm_grad_sums(p);
    const int x = p.steps.back().inputs[0];
    std::vector<int> activations{x, m.dy};
    std::vector<std::pair<int, int>> in_place;
    if (m.mask == Masked::ByOutput) {
        activations.insert(activations.end(), {m.y, m.d});
        in_place = {{m.d, m.dy}, {m.d, m.y}};
    }
    return in_each_layout(p, activations, in_place, sums_workspace(p.tensors[static_cast<size_t>(x)]));
}
std::unique_ptr<Kernel> prepare_sums(const KernelRequest& request, Device& device) {
    const Problem& p = request.problem;
    const auto m = *norm_grad_sums(p);
    const auto& step = p.steps.back();
    std::unique_ptr<Kernel> kernel;
    with_floating(dtype_of(request, step.inputs[0]), [&](auto zero) {
        using T = decltype(zero);
        const ChannelPlan plan = plan_of(request, step.inputs[0], true);
        const auto channels =
            channels_of<Wide<T>>(request, step.inputs[2], m.gamma, m.beta, std::get<BatchNormGradSumsOp>(step.op).epsilon);
        const T *const x = data_of<const T>(request, step.inputs[0]), *const dy = data_of<const T>(request, m.dy);
        auto *const dgamma = data_of<Wide<T>>(request, step.outputs[0]), *const dbeta = data_of<Wide<T>>(request, step.outputs[1]);
        void* const workspace = request.workspace;
        if (m.mask == Masked::ByOutput)
            kernel = pass_kernel(device, plan,
                                 GradSumsPass<T, Masked::ByOutput>{
                                     {x, dy, data_of<const T>(request, m.y)}, data_of<T>(request, m.d), channels, dgamma, dbeta},
                                 workspace);
        else if (m.mask == Masked::ByNormalized)
            kernel = pass_kernel(device, plan, GradSumsPass<T, Masked::ByNormalized>{{x, dy}, nullptr, channels, dgamma, dbeta}, workspace);
        else
            kernel = pass_kernel(device, plan, GradSumsPass<T, Masked::No>{{x, dy}, nullptr, channels, dgamma, dbeta}, workspace);
    });
    return kernel;
}

// The sums, masked by the output, of a gradient that comes from two sides: [Add, ReLU's gradient, sums], as where a skip connection parts.
struct SumMasking {
    Masking masking;  // its dy is one of them
    int other;        // and this the other
};
std::optional<SumMasking> norm_grad_sums_of_sum(const Problem& p) {
    if (!steps_are<AddOp, UnaryGradOp, BatchNormGradSumsOp>(p) || p.steps[0].inputs.size() != 2) return std::nullopt;
    if (!continues(p, 1, 1) || input_of(p, 2, 1) != output_of(p, 1) || op_of<UnaryGradOp>(p, 1).kind != Unary::Relu) return std::nullopt;
    const Masking masking{.mask = Masked::ByOutput, .dy = input_of(p, 0, 0), .y = input_of(p, 1, 0), .d = output_of(p, 1)};
    for (const int t : {masking.dy, input_of(p, 0, 1), masking.y, input_of(p, 2, 0), input_of(p, 2, 2)})
        if (!is_input(p, t)) return std::nullopt;
    if (!is_output(p, masking.d)) return std::nullopt;
    return SumMasking{masking, input_of(p, 0, 1)};
}

bool accepts_sums_of_sum(const Problem& p) { return norm_grad_sums_of_sum(p).has_value(); }
std::vector<Candidate> sums_of_sum_candidates(const Problem& p) {
    const auto [m, other] = *norm_grad_sums_of_sum(p);
    const int x = p.steps.back().inputs[0];
    return in_each_layout(p, {x, m.dy, other, m.y, m.d}, {{m.d, m.dy}, {m.d, other}, {m.d, m.y}},
                          sums_workspace(p.tensors[static_cast<size_t>(x)]));
}
std::unique_ptr<Kernel> prepare_sums_of_sum(const KernelRequest& request, Device& device) {
    const auto [m, other] = *norm_grad_sums_of_sum(request.problem);
    const auto& step = request.problem.steps.back();
    std::unique_ptr<Kernel> kernel;
    with_floating(dtype_of(request, step.inputs[0]), [&, &m = m, &other = other](auto zero) {
        using T = decltype(zero);
        using W = Wide<T>;
        const auto channels = channels_of<W>(request, step.inputs[2], m.gamma, m.beta, std::get<BatchNormGradSumsOp>(step.op).epsilon);
        const T *const x = data_of<const T>(request, step.inputs[0]), *const dy = data_of<const T>(request, m.dy),
                       *const y = data_of<const T>(request, m.y);
        T* const d = data_of<T>(request, m.d);
        const GradSumsPass<T, Masked::ByOutput> pass{
            {x, dy, y}, d, channels, data_of<W>(request, step.outputs[0]), data_of<W>(request, step.outputs[1])};
        kernel = pass_kernel(device, plan_of(request, step.inputs[0], true),
                             GradSumsOfSumPass<T>{{x, dy, y, data_of<const T>(request, other)}, d, pass}, request.workspace);
    });
    return kernel;
}

bool accepts_grad_input(const Problem& p) { return norm_grad_input(p).has_value(); }
std::vector<Candidate> grad_input_candidates(const Problem& p) {
    const auto m = *norm_grad_input(p);
    const int x = p.steps.back().inputs[0], dx = p.steps.back().outputs[0];
    return in_each_layout(p, {x, m.dy, dx}, {{dx, m.dy}, {dx, x}});
}
std::unique_ptr<Kernel> prepare_grad_input(const KernelRequest& request, Device& device) {
    const auto m = *norm_grad_input(request.problem);
    const auto& step = request.problem.steps.back();
    const auto& op = std::get<BatchNormGradInputOp>(step.op);
    std::unique_ptr<Kernel> kernel;
    with_floating(dtype_of(request, step.inputs[0]), [&](auto zero) {
        using T = decltype(zero);
        using W = Wide<T>;
        const ChannelPlan plan = plan_of(request, step.inputs[0], false);
        const auto channels = channels_of<W>(request, step.inputs[2], step.inputs[3], m.beta, op.epsilon);
        const T *const x = data_of<const T>(request, step.inputs[0]), *const dy = data_of<const T>(request, m.dy);
        T* const dx = data_of<T>(request, step.outputs[0]);
        const W *const dgamma = data_of<const W>(request, step.inputs[4]), *const dbeta = data_of<const W>(request, step.inputs[5]);
        const auto count = static_cast<double>(op.count);
        kernel =
            m.mask == Masked::ByNormalized
                ? pass_kernel(device, plan, GradInputPass<T, Masked::ByNormalized>{{x, dy}, dx, channels, dgamma, dbeta, count}, nullptr)
                : pass_kernel(device, plan, GradInputPass<T, Masked::No>{{x, dy}, dx, channels, dgamma, dbeta, count}, nullptr);
    });
    return kernel;
}

bool accepts_fixed(const Problem& p) { return steps_are<BatchNormFixedGradInputOp>(p); }
std::vector<Candidate> fixed_candidates(const Problem& p) {
    return in_each_layout(p, {input_of(p, 0, 0), output_of(p, 0)}, {{output_of(p, 0), input_of(p, 0, 0)}});
}
std::unique_ptr<Kernel> prepare_fixed(const KernelRequest& request, Device& device) {
    const auto& step = request.problem.steps[0];
    std::unique_ptr<Kernel> kernel;
    with_floating(dtype_of(request, step.inputs[0]), [&](auto zero) {
        using T = decltype(zero);
        const auto channels =
            channels_of<Wide<T>>(request, step.inputs[1], step.inputs[2], kNoTensor, std::get<BatchNormFixedGradInputOp>(step.op).epsilon);
        kernel = pass_kernel(
            device, plan_of(request, step.inputs[0], false),
            FixedGradInputPass<T>{{data_of<const T>(request, step.inputs[0])}, data_of<T>(request, step.outputs[0]), channels}, nullptr);
    });
    return kernel;
}

// --- On numbers per channel alone -------------------------------------------------------------------------------------------------

template <class W>
__global__ void running_stats(const W* mean, const W* variance, W* stats, int64_t channels) {
    const int64_t c = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (c >= channels) return;
    stats[c] = mean[c];
    stats[channels + c] = variance[c];
}

struct RunningRates {
    double keep, mean, variance;
};
template <class W>
__global__ void running_update(const W* mean, const W* variance, const W* stats, W* new_mean, W* new_variance, int64_t channels,
                               RunningRates rates) {
    const int64_t c = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (c >= channels) return;
    new_mean[c] = static_cast<W>(rates.keep * mean[c] + rates.mean * stats[c]);
    new_variance[c] = static_cast<W>(rates.keep * variance[c] + rates.variance * stats[channels + c]);
}

constexpr int kMostParts = 256;
struct PartWeights {
    int parts;
    double merged;          // the share of what the statistics hold already; 0: they hold nothing yet
    double of[kMostParts];  // the share of each part's elements
};
// Some parts, and those of the launches before.
template <class W>
__global__ void merge_stats(const W* parts, W* stats, int64_t cells, PartWeights weights) {
    const int64_t cell = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (cell >= cells) return;
    const double mean_before = weights.merged > 0 ? static_cast<double>(stats[cell]) : 0;
    double mean = weights.merged * mean_before, variance = 0;
    for (int p = 0; p < weights.parts; ++p)
        if (weights.of[p] > 0) mean += weights.of[p] * static_cast<double>(parts[2 * p * cells + cell]);
    const auto add = [&](double share, double part_mean, W part_variance) {
        const double off = part_mean - mean;
        variance += share * (static_cast<double>(part_variance) + off * off);
    };
    if (weights.merged > 0) add(weights.merged, mean_before, stats[cells + cell]);
    for (int p = 0; p < weights.parts; ++p)
        if (weights.of[p] > 0) add(weights.of[p], static_cast<double>(parts[2 * p * cells + cell]), parts[(2 * p + 1) * cells + cell]);
    stats[cell] = static_cast<W>(mean);
    stats[cells + cell] = static_cast<W>(variance);
}

dim3 blocks_for(int64_t channels) { return dim3(static_cast<unsigned>(std::max<int64_t>(1, ceil_div(channels, kThreads)))); }

bool accepts_running_stats(const Problem& p) { return steps_are<RunningStatsOp>(p); }
std::vector<Candidate> plain_candidate(const Problem& p) { return only_plain(p); }
std::unique_ptr<Kernel> prepare_running_stats(const KernelRequest& request, Device& device) {
    const auto &in = request.inputs, &out = request.outputs;
    const int64_t channels = in[0].desc.shape[0];
    std::unique_ptr<Kernel> kernel;
    with_floating(in[0].desc.dtype, [&](auto zero) {
        using W = Wide<decltype(zero)>;
        kernel = make_kernel([&device, channels, mean = static_cast<const W*>(in[0].data), variance = static_cast<const W*>(in[1].data),
                              stats = static_cast<W*>(out[0].data)](const StepContext&) {
            launch(device, running_stats<W>, blocks_for(channels), kThreads, mean, variance, stats, channels);
        });
    });
    return kernel;
}

bool accepts_running_update(const Problem& p) { return steps_are<RunningUpdateOp>(p); }
std::vector<Candidate> running_update_candidates(const Problem& p) {
    return only_plain(p, {{output_of(p, 0, 0), input_of(p, 0, 0)}, {output_of(p, 0, 1), input_of(p, 0, 1)}});
}
std::unique_ptr<Kernel> prepare_running_update(const KernelRequest& request, Device& device) {
    const auto& step = request.problem.steps[0];
    const auto& op = std::get<RunningUpdateOp>(step.op);
    const auto count = static_cast<double>(op.count);
    const RunningRates rates{1 - op.momentum, op.momentum, op.momentum * (op.count > 1 ? count / (count - 1) : 1)};
    std::unique_ptr<Kernel> kernel;
    with_floating(dtype_of(request, step.inputs[0]), [&](auto zero) {
        using W = Wide<decltype(zero)>;
        const auto in = [&](size_t i) { return data_of<const W>(request, step.inputs[i]); };
        const auto out = [&](size_t i) { return data_of<W>(request, step.outputs[i]); };
        const int64_t channels = operand(request, step.inputs[0]).desc.shape[0];
        kernel = make_kernel([&device, rates, channels, mean = in(0), variance = in(1), stats = in(2), new_mean = out(0),
                              new_variance = out(1)](const StepContext&) {
            launch(device, running_update<W>, blocks_for(channels), kThreads, mean, variance, stats, new_mean, new_variance, channels,
                   rates);
        });
    });
    return kernel;
}

bool accepts_merge(const Problem& p) { return steps_are<MergeStatsOp>(p); }
std::unique_ptr<Kernel> prepare_merge(const KernelRequest& request, Device& device) {
    const auto& counts = op_of<MergeStatsOp>(request.problem).counts;
    std::vector<PartWeights> launches;
    double before = 0;
    for (size_t first = 0; first < counts.size(); first += kMostParts) {
        const size_t last = std::min(counts.size(), first + kMostParts);
        double total = before;
        for (size_t p = first; p < last; ++p) total += static_cast<double>(counts[p]);
        PartWeights& weights = launches.emplace_back();
        weights.parts = static_cast<int>(last - first);
        weights.merged = total > 0 ? before / total : 0;
        for (size_t p = first; p < last; ++p) weights.of[p - first] = counts[p] > 0 ? static_cast<double>(counts[p]) / total : 0;
        before = total;
    }
    const int64_t cells = request.outputs[0].desc.shape[1];
    std::unique_ptr<Kernel> kernel;
    with_floating(request.inputs[0].desc.dtype, [&](auto zero) {
        using W = Wide<decltype(zero)>;
        kernel = make_kernel([&device, launches, cells, parts = static_cast<const W*>(request.inputs[0].data),
                              stats = static_cast<W*>(request.outputs[0].data)](const StepContext&) {
            for (size_t i = 0; i < launches.size(); ++i)
                launch(device, merge_stats<W>, blocks_for(cells), kThreads, parts + 2 * static_cast<int64_t>(i) * kMostParts * cells, stats,
                       cells, launches[i]);
        });
    });
    return kernel;
}

}  // namespace

Family norm_family() {
    return {"norm",
            {{accepts_stats, stats_candidates, prepare_stats},
             {accepts_normalizing, normalizing_candidates, prepare_normalizing},
             {accepts_sums, sums_candidates, prepare_sums},
             {accepts_sums_of_sum, sums_of_sum_candidates, prepare_sums_of_sum},
             {accepts_grad_input, grad_input_candidates, prepare_grad_input},
             {accepts_fixed, fixed_candidates, prepare_fixed},
             {accepts_running_stats, plain_candidate, prepare_running_stats},
             {accepts_running_update, running_update_candidates, prepare_running_update},
             {accepts_merge, plain_candidate, prepare_merge}}};
}

}  // namespace convoy::cuda
