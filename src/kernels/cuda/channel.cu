// Biases and PReLU: passes with a number per channel.
#include "kernels/cuda/bias.h"
#include "kernels/cuda/channel_pass.cuh"
#include "kernels/cuda/family.h"
#include "kernels/cuda/unary.cuh"

namespace convoy::cuda {

namespace {

// --- Passes ---------------------------------------------------------------------------------------------------------------------

template <class T>
struct BiasPass {
    using Element = T;
    using W = Wide<T>;
    static constexpr int kIn = 1, kSums = 0;
    static constexpr bool kWrites = true;
    const T* in[1];
    T* out;
    const W* bias;
    Rectifier after;

    struct Param {
        W bias;
    };
    __device__ Param param(int64_t c) const { return {bias ? bias[c] : W{0}}; }
    __device__ W apply(const Param& p, const W (&x)[1], W (&)[1]) const { return after(x[0] + p.bias); }
};

// The sums of dy; with kMasked of d, dy through a rectifier whose output is the second tensor, and d is written.
template <class T, bool kMasked>
struct BiasGradPass {
    using Element = T;
    using W = Wide<T>;
    static constexpr int kIn = kMasked ? 2 : 1, kSums = 1;
    static constexpr bool kWrites = kMasked;
    const T* in[kIn];
    T* out;
    W* db;
    Rectifier before;

    struct Param {};
    __device__ Param param(int64_t) const { return {}; }
    __device__ W apply(const Param&, const W (&x)[kIn], W (&sums)[2]) const {
        W d = x[0];
        if constexpr (kMasked) {
            // What is written is what is summed.
            d = widen(narrow<T>(before.grad(x[kIn - 1], x[0])));
        }
        sums[0] += d;
        return d;
    }
    __device__ void finish(int64_t c, const double (&sums)[1]) const { db[c] = static_cast<W>(sums[0]); }
};

enum class PRelu { Forward, GradInput, GradSlope };

template <class T, PRelu kWhat>
struct PReluPass {
    using Element = T;
    using W = Wide<T>;
    static constexpr int kIn = kWhat == PRelu::Forward ? 1 : 2, kSums = kWhat == PRelu::GradSlope ? 1 : 0;
    static constexpr bool kWrites = kWhat != PRelu::GradSlope;
    const T* in[kIn];  // x, dy
    T* out;
    const W* slope;
    bool shared;  // one slope for all channels
    W* dslope;

    struct Param {
        W slope;
    };
    __device__ Param param(int64_t c) const { return {slope ? slope[shared ? 0 : c] : W{0}}; }
    __device__ W apply(const Param& p, const W (&x)[kIn], W (&sums)[kSums + 1]) const {
        if constexpr (kWhat == PRelu::Forward) return x[0] > 0 ? x[0] : p.slope * x[0];
        if constexpr (kWhat == PRelu::GradInput) return x[0] > 0 ? x[kIn - 1] : p.slope * x[kIn - 1];
        sums[0] += x[0] > 0 ? W{0} : x[0] * x[kIn - 1];
        return 0;
    }
    __device__ void finish(int64_t c, const double (&sums)[kSums > 0 ? kSums : 1]) const { dslope[c] = static_cast<W>(sums[0]); }
};

// --- Bias -----------------------------------------------------------------------------------------------------------------------

// [Bias] and [Bias, rectifier].
struct Biasing {
    int x, b, y, axis, rank;
    Rectifier after;
};
std::optional<Biasing> biasing(const Problem& p) {
    const bool followed = steps_are<BiasOp, UnaryOp>(p);
    if (!followed && !steps_are<BiasOp>(p)) return std::nullopt;
    Biasing b{input_of(p, 0, 0),
              input_of(p, 0, 1),
              output_of(p, p.steps.size() - 1),
              op_of<BiasOp>(p).axis,
              shape_of(p, input_of(p, 0, 1)).size(),
              {}};
    if (followed) {
        const auto& op = op_of<UnaryOp>(p, 1);
        if (!continues(p, 1) || !is_rectifier(op.kind)) return std::nullopt;
        b.after = rectifier_of(op.kind, op.alpha);
    }
    return b;
}

bool per_channel(int axis, int rank) { return axis == 1 && rank == 1; }

ChannelPlan bias_plan(const Operand& x, int axis, int rank, bool sums) {
    const ChannelView view = per_channel(axis, rank) ? channel_view(x.desc.shape, x.layout) : channel_view_around(x.desc.shape, axis, rank);
    return plan_channels(view, x.desc.dtype, sums);
}

bool accepts_bias(const Problem& p) { return biasing(p).has_value(); }
std::vector<Candidate> bias_candidates(const Problem& p) {
    const auto b = *biasing(p);
    if (!per_channel(b.axis, b.rank)) return only_plain(p, {{b.y, b.x}});
    return in_each_layout(p, {b.x, b.y}, {{b.y, b.x}});
}
std::unique_ptr<Kernel> prepare_bias(const KernelRequest& request, Device& device) {
    const auto b = *biasing(request.problem);
    std::unique_ptr<Kernel> kernel;
    with_floating(dtype_of(request, b.x), [&](auto zero) {
        using T = decltype(zero);
        const ChannelPlan plan = bias_plan(operand(request, b.x), b.axis, b.rank, false);
        const BiasPass<T> pass{{data_of<const T>(request, b.x)}, data_of<T>(request, b.y), data_of<const Wide<T>>(request, b.b), b.after};
        kernel = pass_kernel(device, plan, pass, nullptr);
    });
    return kernel;
}

// [BiasGrad] and [gradient of a rectifier that reads its output, whose result is wanted too; BiasGrad].
struct BiasSumming {
    int dy, y = kNoTensor, d = kNoTensor, db, axis, rank;
    Rectifier before;
};
std::optional<BiasSumming> bias_summing(const Problem& p) {
    const bool masked = steps_are<UnaryGradOp, BiasGradOp>(p);
    if (!masked && !steps_are<BiasGradOp>(p)) return std::nullopt;
    const size_t last = p.steps.size() - 1;
    const auto& op = op_of<BiasGradOp>(p, last);
    BiasSumming b{.dy = input_of(p, last, 0), .db = output_of(p, last), .axis = op.axis, .rank = op.rank};
    if (masked) {
        const auto& grad = op_of<UnaryGradOp>(p);
        b.d = b.dy;
        b.y = input_of(p, 0, 0);
        b.dy = input_of(p, 0, 1);
        if (output_of(p, 0) != b.d || !is_output(p, b.d) || !is_input(p, b.y) || !is_input(p, b.dy) || !is_rectifier(grad.kind))
            return std::nullopt;
        b.before = rectifier_of(grad.kind, grad.alpha);
    }
    return b;
}

int64_t bias_workspace(const TensorDesc& dy, int axis, int rank) {
    int64_t bytes = 0;
    for (const Layout& layout : activation_layouts(dy.shape))
        bytes = std::max(bytes, bias_plan({nullptr, dy, layout}, axis, rank, true).workspace_bytes(1));
    return bytes;
}

bool accepts_bias_grad(const Problem& p) { return bias_summing(p).has_value(); }
std::vector<Candidate> bias_grad_candidates(const Problem& p) {
    const auto b = *bias_summing(p);
    const int64_t workspace = bias_workspace(p.tensors[static_cast<size_t>(b.dy)], b.axis, b.rank);
    std::vector<int> activations{b.dy};
    std::vector<std::pair<int, int>> in_place;
    if (b.d != kNoTensor) {
        activations.insert(activations.end(), {b.y, b.d});
        in_place = {{b.d, b.dy}, {b.d, b.y}};
    }
    if (!per_channel(b.axis, b.rank)) return only_plain(p, in_place, workspace);
    return in_each_layout(p, activations, in_place, workspace);
}
std::unique_ptr<Kernel> prepare_bias_grad(const KernelRequest& request, Device& device) {
    const auto b = *bias_summing(request.problem);
    std::unique_ptr<Kernel> kernel;
    with_floating(dtype_of(request, b.dy), [&](auto zero) {
        using T = decltype(zero);
        const ChannelPlan plan = bias_plan(operand(request, b.dy), b.axis, b.rank, true);
        const auto started = [&](const auto& pass) { return pass_kernel(device, plan, pass, request.workspace); };
        const T* const dy = data_of<const T>(request, b.dy);
        auto* const db = data_of<Wide<T>>(request, b.db);
        if (b.d == kNoTensor)
            kernel = started(BiasGradPass<T, false>{{dy}, nullptr, db, {}});
        else
            kernel = started(BiasGradPass<T, true>{{dy, data_of<const T>(request, b.y)}, data_of<T>(request, b.d), db, b.before});
    });
    return kernel;
}

// --- PReLU ----------------------------------------------------------------------------------------------------------------------

bool accepts_prelu(const Problem& p) { return steps_are<PReluOp>(p) || steps_are<PReluGradInputOp>(p); }
std::vector<Candidate> prelu_candidates(const Problem& p) {
    const int x = input_of(p, 0, 0), y = output_of(p, 0);
    if (steps_are<PReluOp>(p)) return in_each_layout(p, {x, y}, {{y, x}});
    const int dy = input_of(p, 0, 2);
    return in_each_layout(p, {x, dy, y}, {{y, x}, {y, dy}});
}
std::unique_ptr<Kernel> prepare_prelu(const KernelRequest& request, Device& device) {
    const auto& step = request.problem.steps[0];
    const Operand& x = operand(request, step.inputs[0]);
    std::unique_ptr<Kernel> kernel;
    with_floating(x.desc.dtype, [&](auto zero) {
        using T = decltype(zero);
        const ChannelPlan plan = plan_channels(channel_view(x.desc.shape, x.layout), x.desc.dtype, false);
        const auto* const slope = data_of<const Wide<T>>(request, step.inputs[1]);
        const bool shared = numel(operand(request, step.inputs[1]).desc.shape) == 1;
        const T* const in = static_cast<const T*>(x.data);
        T* const out = data_of<T>(request, step.outputs[0]);
        const auto started = [&](const auto& pass) { return pass_kernel(device, plan, pass, nullptr); };
        kernel =
            step.inputs.size() == 2
                ? started(PReluPass<T, PRelu::Forward>{{in}, out, slope, shared, nullptr})
                : started(PReluPass<T, PRelu::GradInput>{{in, data_of<const T>(request, step.inputs[2])}, out, slope, shared, nullptr});
    });
    return kernel;
}

// One slope for all channels is the sum over everything, as over one channel.
ChannelPlan slope_plan(const TensorDesc& x, const Layout& layout, int64_t slopes) {
    return plan_channels(slopes == 1 ? ChannelView{1, 1, numel(x.shape)} : channel_view(x.shape, layout), x.dtype, true);
}

bool accepts_slope(const Problem& p) { return steps_are<PReluGradSlopeOp>(p); }
std::vector<Candidate> slope_candidates(const Problem& p) {
    const TensorDesc& x = p.tensors[static_cast<size_t>(input_of(p, 0, 0))];
    int64_t bytes = 0;
    for (const Layout& layout : activation_layouts(x.shape))
        bytes = std::max(bytes, slope_plan(x, layout, op_of<PReluGradSlopeOp>(p).slopes).workspace_bytes(1));
    return in_each_layout(p, {input_of(p, 0, 0), input_of(p, 0, 1)}, {}, bytes);
}
std::unique_ptr<Kernel> prepare_slope(const KernelRequest& request, Device& device) {
    const auto& step = request.problem.steps[0];
    const Operand& x = operand(request, step.inputs[0]);
    std::unique_ptr<Kernel> kernel;
    with_floating(x.desc.dtype, [&](auto zero) {
        using T = decltype(zero);
        const ChannelPlan plan = slope_plan(x.desc, x.layout, op_of<PReluGradSlopeOp>(request.problem).slopes);
        const PReluPass<T, PRelu::GradSlope> pass{{static_cast<const T*>(x.data), data_of<const T>(request, step.inputs[1])},
                                                  nullptr,
                                                  nullptr,
                                                  false,
                                                  data_of<Wide<T>>(request, step.outputs[0])};
        kernel = pass_kernel(device, plan, pass, request.workspace);
    });
    return kernel;
}

}  // namespace

bool can_follow_bias(const UnaryOp& op) { return is_rectifier(op.kind); }

void start_bias(const Device& device, const Operand& y, const void* bias, const UnaryOp* activation) {
    with_floating(y.desc.dtype, [&](auto zero) {
        using T = decltype(zero);
        const BiasPass<T> pass{{static_cast<const T*>(y.data)},
                               static_cast<T*>(y.data),
                               static_cast<const Wide<T>*>(bias),
                               activation ? rectifier_of(activation->kind, activation->alpha) : Rectifier{}};
        start_channel_pass(device, plan_channels(channel_view(y.desc.shape, y.layout), y.desc.dtype, false), pass, nullptr);
    });
}

Family channel_family() {
    return {"channel",
            {{accepts_bias, bias_candidates, prepare_bias},
             {accepts_bias_grad, bias_grad_candidates, prepare_bias_grad},
             {accepts_prelu, prelu_candidates, prepare_prelu},
             {accepts_slope, slope_candidates, prepare_slope}}};
}

}  // namespace convoy::cuda
