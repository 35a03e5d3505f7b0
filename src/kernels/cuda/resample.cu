// Adaptive average pooling and up-sampling: what one output reads along one dim is a stretch of inputs with weights, and dims multiply. Parts of tensors
// compute with positions in the whole. Gradients gather, over all outputs that might read an input.
#include "kernels/cuda/copy.h"
#include "kernels/cuda/family.h"
#include "kernels/cuda/positions.cuh"

namespace convoy::cuda {

namespace {

enum class Rule { Average, Nearest, Linear, LinearCorners };

// Inputs [begin, end) of the whole, the first with one weight, the others with another.
struct Taps {
    int begin, end;
    double first, others;
    __device__ double weight(int i) const { return i == begin ? first : others; }
};

template <Rule kRule>
__device__ Taps taps_of(int64_t o, int64_t in, int64_t out) {
    if constexpr (kRule == Rule::Nearest) {
        const int source = static_cast<int>(o * in / out);
        return {source, source + 1, 1, 0};
    }
    if constexpr (kRule == Rule::Average) {
        const int begin = static_cast<int>(o * in / out), end = static_cast<int>(((o + 1) * in + out - 1) / out);
        const double share = 1.0 / (end - begin);
        return {begin, end, share, share};
    }
    double source = 0;
    if constexpr (kRule == Rule::Linear)
        source = fmax(0.0, (static_cast<double>(o) + 0.5) * static_cast<double>(in) / static_cast<double>(out) - 0.5);
    else if (out > 1)
        source = static_cast<double>(o) * static_cast<double>(in - 1) / static_cast<double>(out - 1);
    const int begin = static_cast<int>(min(static_cast<int64_t>(source), in - 1));
    if (begin == in - 1) return {begin, begin + 1, 1, 0};
    const double rest = source - begin;
    return {begin, begin + 2, 1 - rest, rest};
}

// Of input and output along each dim: where this part lies, and the whole's length.
struct Frame {
    int in_origin[3], out_origin[3];
    int64_t in_whole[3], out_whole[3];
};

template <class T, Rule kRule, int V, bool kLast>
__global__ void __launch_bounds__(kThreads) resample(Volume x, Volume y, Frame frame, const T* xs, T* ys, uint32_t packs) {
    using W = Wide<T>;
    for (uint32_t i = first_item(); i < packs; i = next_item(i, packs)) {
        const Position p = position_of<kLast, V>(y, i);
        Taps taps[3];
        int first[3], last[3];
        for (int d = 0; d < 3; ++d) {
            taps[d] = taps_of<kRule>(p.at[d] + frame.out_origin[d], frame.in_whole[d], frame.out_whole[d]);
            first[d] = max(taps[d].begin - frame.in_origin[d], 0);
            last[d] = min(taps[d].end - frame.in_origin[d], static_cast<int>(x.size[d]));
        }
        W sums[V] = {};
        const int64_t sample = p.n * x.stride_n + p.c * x.stride_c;
        for (int i0 = first[0]; i0 < last[0]; ++i0)
            for (int i1 = first[1]; i1 < last[1]; ++i1) {
                const double outer = taps[0].weight(i0 + frame.in_origin[0]) * taps[1].weight(i1 + frame.in_origin[1]);
                for (int i2 = first[2]; i2 < last[2]; ++i2) {
                    const W weight = static_cast<W>(outer * taps[2].weight(i2 + frame.in_origin[2]));
                    const auto in = load<V>(xs + sample + i0 * x.stride[0] + i1 * x.stride[1] + i2 * x.stride[2]);
#pragma unroll
                    for (int v = 0; v < V; ++v) sums[v] += widen(in.at[v]) * weight;
                }
            }
        Pack<T, V> out;
#pragma unroll
        for (int v = 0; v < V; ++v) out.at[v] = narrow<T>(sums[v]);
        store<V>(ys + offset_of(y, p), out);
    }
}

template <class T, Rule kRule, int V, bool kLast>
__global__ void __launch_bounds__(kThreads) resample_grad(Volume x, Volume y, Frame frame, const T* dys, T* dxs, uint32_t packs) {
    using W = Wide<T>;
    for (uint32_t i = first_item(); i < packs; i = next_item(i, packs)) {
        const Position p = position_of<kLast, V>(x, i);
        int whole[3], first[3], last[3];
        for (int d = 0; d < 3; ++d) {
            // All outputs that might read this input, by any rule, with some to spare.
            const int64_t in = frame.in_whole[d], out = frame.out_whole[d];
            whole[d] = p.at[d] + frame.in_origin[d];
            const int64_t low = (whole[d] - 1) * out / in - 2, high = ((whole[d] + 2) * out + in - 1) / in + 2;
            first[d] = static_cast<int>(max(low - frame.out_origin[d], int64_t{0}));
            last[d] = static_cast<int>(min(high - frame.out_origin[d], y.size[d]));
        }
        W sums[V] = {};
        const int64_t sample = p.n * y.stride_n + p.c * y.stride_c;
        const auto weight_of = [&](int d, int o) {
            const Taps taps = taps_of<kRule>(o + frame.out_origin[d], frame.in_whole[d], frame.out_whole[d]);
            return whole[d] >= taps.begin && whole[d] < taps.end ? taps.weight(whole[d]) : 0.0;
        };
        for (int o0 = first[0]; o0 < last[0]; ++o0) {
            const double w0 = weight_of(0, o0);
            if (w0 == 0) continue;
            for (int o1 = first[1]; o1 < last[1]; ++o1) {
                const double w1 = w0 * weight_of(1, o1);
                if (w1 == 0) continue;
                for (int o2 = first[2]; o2 < last[2]; ++o2) {
                    const double w2 = w1 * weight_of(2, o2);
                    if (w2 == 0) continue;
                    const auto dy = load<V>(dys + sample + o0 * y.stride[0] + o1 * y.stride[1] + o2 * y.stride[2]);
#pragma unroll
                    for (int v = 0; v < V; ++v) sums[v] += widen(dy.at[v]) * static_cast<W>(w2);
                }
            }
        }
        Pack<T, V> out;
#pragma unroll
        for (int v = 0; v < V; ++v) out.at[v] = narrow<T>(sums[v]);
        store<V>(dxs + offset_of(x, p), out);
    }
}

// --- Cases ----------------------------------------------------------------------------------------------------------------------

struct Resampling {
    Rule rule;
    bool gradient;
};
Rule rule_of(Resample mode, bool corners) {
    return mode == Resample::Nearest ? Rule::Nearest : corners ? Rule::LinearCorners : Rule::Linear;
}
std::optional<Resampling> resampling(const Problem& p) {
    if (steps_are<AdaptivePoolOp>(p)) return Resampling{Rule::Average, false};
    if (steps_are<AdaptivePoolGradOp>(p)) return Resampling{Rule::Average, true};
    if (steps_are<UpsampleOp>(p)) return Resampling{rule_of(op_of<UpsampleOp>(p).mode, op_of<UpsampleOp>(p).align_corners), false};
    if (steps_are<UpsampleGradOp>(p))
        return Resampling{rule_of(op_of<UpsampleGradOp>(p).mode, op_of<UpsampleGradOp>(p).align_corners), true};
    return std::nullopt;
}

Frame frame_of(const TensorDesc& x, const TensorDesc& y) {
    Frame frame{{0, 0, 0}, {0, 0, 0}, {1, 1, 1}, {1, 1, 1}};
    const int rank = x.shape.size() - 2;
    for (int i = 0; i < rank; ++i) {
        const int at = 3 - rank + i;
        frame.in_origin[at] = static_cast<int>(x.origin[2 + i]);
        frame.out_origin[at] = static_cast<int>(y.origin[2 + i]);
        frame.in_whole[at] = x.global[2 + i];
        frame.out_whole[at] = y.global[2 + i];
    }
    return frame;
}

bool accepts(const Problem& p) { return resampling(p).has_value(); }
std::vector<Candidate> candidates(const Problem& p) { return in_each_layout(p, {input_of(p, 0, 0), output_of(p, 0)}); }

template <Rule kRule>
std::unique_ptr<Kernel> prepare_rule(const KernelRequest& request, Device& device, bool gradient) {
    const auto& step = request.problem.steps[0];
    const Operand &from = operand(request, step.inputs[0]), &to = operand(request, step.outputs[0]);
    const Operand &x = gradient ? to : from, &y = gradient ? from : to;
    const Volume vx = volume_of(x.desc.shape, x.layout), vy = volume_of(y.desc.shape, y.layout);
    const Frame frame = frame_of(x.desc, y.desc);
    std::unique_ptr<Kernel> kernel;
    with_floating(from.desc.dtype, [&](auto zero) {
        using T = decltype(zero);
        with_packs<T>(vx, vy, [&](auto width, auto last) {
            constexpr int V = decltype(width)::value;
            constexpr bool kLast = decltype(last)::value;
            const auto run = gradient ? resample_grad<T, kRule, V, kLast> : resample<T, kRule, V, kLast>;
            const uint32_t packs = packs_of(gradient ? vx : vy, V);
            kernel =
                make_kernel([&device, run, vx, vy, frame, packs, in = static_cast<const T*>(from.data), out = static_cast<T*>(to.data)](
                                const StepContext&) { launch(device, run, grid_for(packs), kThreads, vx, vy, frame, in, out, packs); });
        });
    });
    return kernel;
}

// Every rule maps a length to itself one by one.
bool is_copy(const TensorDesc& from, const TensorDesc& to) {
    return from.shape == to.shape && from.global == to.global && from.origin == to.origin;
}

std::unique_ptr<Kernel> prepare(const KernelRequest& request, Device& device) {
    const auto r = *resampling(request.problem);
    const auto& step = request.problem.steps[0];
    const Operand &from = operand(request, step.inputs[0]), &to = operand(request, step.outputs[0]);
    if (is_copy(from.desc, to.desc)) return make_kernel([&device, from, to](const StepContext&) { start_copy(device, from, to); });
    switch (r.rule) {
        case Rule::Average: return prepare_rule<Rule::Average>(request, device, r.gradient);
        case Rule::Nearest: return prepare_rule<Rule::Nearest>(request, device, r.gradient);
        case Rule::Linear: return prepare_rule<Rule::Linear>(request, device, r.gradient);
        case Rule::LinearCorners: return prepare_rule<Rule::LinearCorners>(request, device, r.gradient);
    }
    return nullptr;
}

}  // namespace

Family resample_family() { return {"resample", {{accepts, candidates, prepare}}}; }

}  // namespace convoy::cuda
