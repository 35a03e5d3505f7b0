// Updates of parameters: one launch for many tensors. What an update needs besides the tensors (learning rate, step, norms, the scale of clipped
// gradients) is read from the device's memory.
#include <vector>

#include "kernels/cuda/family.h"
#include "kernels/cuda/sum.cuh"

namespace convoy::cuda {

namespace {

// A rule's settings, in the type it computes in.
template <class W>
struct Settings {
    W momentum, beta1, beta2, rest1, rest2, rho, rest_rho, epsilon, decay;
    double exact_beta1, exact_beta2, trust, exact_decay;
};
template <class W>
Settings<W> settings_of(const UpdateRule& r) {
    const auto w = [](double v) { return static_cast<W>(v); };
    return {w(r.momentum), w(r.beta1),        w(r.beta2), w(1 - r.beta1), w(1 - r.beta2), w(r.rho),      w(1 - r.rho),
            w(r.epsilon),  w(r.weight_decay), r.beta1,    r.beta2,        r.trust,        r.weight_decay};
}

constexpr int kSlots = 2;
template <class W>
struct UpdateTensor {
    const W *w, *g, *hyper, *scale, *w_norm, *g_norm;  // the last three may be none
    const W* slots[kSlots];
    W *new_w, *new_slots[kSlots];
    int64_t count, first_block;
};

// The tensors of a launch are its parameters, of which 32,764 bytes are allowed; all of them are sent, so a few have a table of their own.
constexpr int kFew = 32, kMany = 256;
template <class W, int kMost>
struct UpdateTable {
    int tensors;
    UpdateTensor<W> of[kMost];
};
static_assert(sizeof(UpdateTable<double, kMany>) + sizeof(Settings<double>) <= 32764);
constexpr int64_t kPerBlock = 4096;

// What all elements of a tensor share, computed once for a block.
template <class W>
struct Shared {
    W rate, scale, correction1, root_correction2, ratio, keep;
};

template <class W>
__device__ W quotient(const Settings<W>& s, const Shared<W>& shared, W g, W (&slot)[kSlots]) {
    slot[0] = s.beta1 * slot[0] + s.rest1 * g;
    slot[1] = s.beta2 * slot[1] + s.rest2 * g * g;
    return slot[0] / shared.correction1 / (sqrt(slot[1]) / shared.root_correction2 + s.epsilon);
}

// The new w (for Lamb: the direction); changes the slots.
template <Rule kRule, class W>
__device__ W updated(const Settings<W>& s, const Shared<W>& shared, W w, W g, W (&slot)[kSlots]) {
    const W rate = shared.rate;
    if constexpr (kRule == Rule::Sgd) return w - rate * (g + s.decay * w);
    if constexpr (kRule == Rule::Momentum) {
        slot[0] = s.momentum * slot[0] + (g + s.decay * w);
        return w - rate * slot[0];
    }
    if constexpr (kRule == Rule::Nesterov) {
        g += s.decay * w;
        slot[0] = s.momentum * slot[0] + g;
        return w - rate * (g + s.momentum * slot[0]);
    }
    if constexpr (kRule == Rule::AdaGrad) {
        g += s.decay * w;
        slot[0] += g * g;
        return w - rate * g / (sqrt(slot[0]) + s.epsilon);
    }
    if constexpr (kRule == Rule::RmsProp) {
        g += s.decay * w;
        slot[0] = s.rho * slot[0] + s.rest_rho * g * g;
        slot[1] = s.momentum * slot[1] + g / (sqrt(slot[0]) + s.epsilon);
        return w - rate * slot[1];
    }
    if constexpr (kRule == Rule::Adam) return w - rate * quotient(s, shared, g + s.decay * w, slot);
    if constexpr (kRule == Rule::AdamW) return shared.keep * w - rate * quotient(s, shared, g, slot);
    if constexpr (kRule == Rule::Lars) {
        slot[0] = s.momentum * slot[0] + shared.ratio * (g + s.decay * w);
        return w - rate * slot[0];
    }
    if constexpr (kRule == Rule::Lamb) return quotient(s, shared, g, slot) + s.decay * w;
}

template <Rule kRule>
constexpr int kSlotsOf = kRule == Rule::Sgd                                                                                    ? 0
                         : kRule == Rule::Momentum || kRule == Rule::Nesterov || kRule == Rule::AdaGrad || kRule == Rule::Lars ? 1
                                                                                                                               : 2;

__device__ double trust_ratio(double norm, double other, double a, double b) { return norm == 0 || other == 0 ? 1 : a / b; }

template <Rule kRule, class W, int kMost>
__global__ void __launch_bounds__(kThreads) update(const __grid_constant__ UpdateTable<W, kMost> table, Settings<W> s) {
    __shared__ Shared<W> shared;
    __shared__ int mine;
    if (threadIdx.x == 0) {
        int t = 0, last = table.tensors - 1;  // the last tensor that begins no later than this block is among these
        while (t < last) {
            const int middle = (t + last + 1) / 2;
            if (table.of[middle].first_block <= blockIdx.x)
                t = middle;
            else
                last = middle - 1;
        }
        mine = t;
        const UpdateTensor<W>& tensor = table.of[t];
        const double rate = tensor.hyper[0], step = tensor.hyper[1];
        shared.rate = static_cast<W>(rate);
        shared.scale = tensor.scale ? tensor.scale[0] : W{1};
        shared.keep = static_cast<W>(1 - rate * s.exact_decay);
        if constexpr (kRule == Rule::Adam || kRule == Rule::AdamW || kRule == Rule::Lamb) {
            shared.correction1 = static_cast<W>(1 - pow(s.exact_beta1, step));
            shared.root_correction2 = static_cast<W>(sqrt(1 - pow(s.exact_beta2, step)));
        }
        if constexpr (kRule == Rule::Lars) {
            const double w_norm = sqrt(static_cast<double>(tensor.w_norm[0]));
            const double g_norm = static_cast<double>(shared.scale) * sqrt(static_cast<double>(tensor.g_norm[0]));
            shared.ratio = static_cast<W>(trust_ratio(w_norm, g_norm, s.trust * w_norm, g_norm + s.exact_decay * w_norm));
        }
    }
    __syncthreads();
    const UpdateTensor<W>& tensor = table.of[mine];
    const int64_t first = (blockIdx.x - tensor.first_block) * kPerBlock, last = min(first + kPerBlock, tensor.count);
    constexpr int kHere = kSlotsOf<kRule>;
#pragma unroll 4
    for (int64_t i = first + threadIdx.x; i < last; i += kThreads) {
        W slot[kSlots] = {};
#pragma unroll
        for (int k = 0; k < kHere; ++k) slot[k] = tensor.slots[k][i];
        tensor.new_w[i] = updated<kRule>(s, shared, tensor.w[i], shared.scale * tensor.g[i], slot);
#pragma unroll
        for (int k = 0; k < kHere; ++k) tensor.new_slots[k][i] = slot[k];
    }
}

template <class W>
__global__ void lamb_apply(const W* w, const W* r, const W* hyper, const W* w_norm, const W* r_norm, W* new_w, int64_t count) {
    const double a = sqrt(static_cast<double>(w_norm[0])), b = sqrt(static_cast<double>(r_norm[0]));
    const W rate = static_cast<W>(static_cast<double>(hyper[0]) * trust_ratio(a, b, a, b));
    const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) new_w[i] = w[i] - rate * r[i];
}

template <class T>
struct SquaredSum {
    static constexpr int kLanes = 1;
    const T* x;
    Wide<T>* result;
    __device__ double operator()(int64_t i, int) const {
        const double value = static_cast<double>(widen(x[i]));
        return value * value;
    }
    __device__ void finish(double sum) const { result[0] = static_cast<Wide<T>>(sum); }
};

template <class W>
__global__ void clip_scale(const W* squared, W* scale, double limit) {
    const double most = limit / (sqrt(static_cast<double>(squared[0])) + 1e-6);
    scale[0] = static_cast<W>(most < 1.0 || most != most ? most : 1.0);  // a NaN stays one
}

// --- Cases ----------------------------------------------------------------------------------------------------------------------

// Calls fn with the rule as a constant.
template <class Fn>
void with_rule(Rule rule, const Fn& fn) {
    switch (rule) {
        case Rule::Sgd: return fn(std::integral_constant<Rule, Rule::Sgd>{});
        case Rule::Momentum: return fn(std::integral_constant<Rule, Rule::Momentum>{});
        case Rule::Nesterov: return fn(std::integral_constant<Rule, Rule::Nesterov>{});
        case Rule::AdaGrad: return fn(std::integral_constant<Rule, Rule::AdaGrad>{});
        case Rule::RmsProp: return fn(std::integral_constant<Rule, Rule::RmsProp>{});
        case Rule::Adam: return fn(std::integral_constant<Rule, Rule::Adam>{});
        case Rule::AdamW: return fn(std::integral_constant<Rule, Rule::AdamW>{});
        case Rule::Lars: return fn(std::integral_constant<Rule, Rule::Lars>{});
        case Rule::Lamb: return fn(std::integral_constant<Rule, Rule::Lamb>{});
    }
}

struct UpdateStep {
    UpdateRule rule;
    bool clipped;
};
UpdateStep update_step(const Op& op) {
    if (const auto* lamb = std::get_if<LambDirectionOp>(&op)) return {lamb->rule, lamb->clipped};
    return {std::get<UpdateOp>(op).rule, std::get<UpdateOp>(op).clipped};
}

// One update, or several by one rule, none of which reads what another makes.
bool accepts_update(const Problem& p) {
    if (steps_are<LambDirectionOp>(p)) return true;
    for (const ProblemStep& step : p.steps) {
        const auto *update = std::get_if<UpdateOp>(&step.op), *first = std::get_if<UpdateOp>(&p.steps[0].op);
        if (!update || !first || *update != *first || update->rule.rule == Rule::Lamb) return false;
        for (const int t : step.inputs)
            if (!is_input(p, t)) return false;
    }
    return !p.steps.empty();
}
std::vector<Candidate> update_candidates(const Problem& p) {
    // The tensors of one update lie alike; those of another may lie otherwise.
    const bool lamb = std::holds_alternative<LambDirectionOp>(p.steps[0].op);
    Candidate candidate = only_plain(p)[0];
    for (size_t n = 0; n < p.steps.size(); ++n) {
        const auto& step = p.steps[n];
        const auto slots = static_cast<size_t>(slots_of(update_step(step.op).rule.rule));
        for (size_t i = 0; i < step.inputs.size(); ++i)
            if (i < 2 || (i >= 3 && i < 3 + slots))
                candidate.inputs[static_cast<size_t>(step.inputs[i])] = Layout::same(static_cast<int>(n));
        for (const int t : step.outputs) candidate.outputs[static_cast<size_t>(t - p.inputs)] = Layout::same(static_cast<int>(n));
    }
    for (const auto& step : p.steps) {
        if (!lamb) candidate.in_place.emplace_back(step.outputs[0] - p.inputs, step.inputs[0]);
        for (size_t k = 1; k < step.outputs.size(); ++k) candidate.in_place.emplace_back(step.outputs[k] - p.inputs, step.inputs[2 + k]);
    }
    return {candidate};
}
// In as many launches as it takes.
template <Rule kRule, class W, int kMost>
std::unique_ptr<Kernel> update_kernel(Device& device, const std::vector<UpdateTensor<W>>& tensors, const Settings<W>& settings) {
    struct Launch {
        UpdateTable<W, kMost> table{};
        int64_t blocks = 0;
    };
    std::vector<Launch> launches;
    for (const UpdateTensor<W>& tensor : tensors) {
        if (launches.empty() || launches.back().table.tensors == kMost) launches.emplace_back();
        auto& [table, blocks] = launches.back();
        table.of[table.tensors] = tensor;
        table.of[table.tensors++].first_block = blocks;
        blocks += ceil_div(tensor.count, kPerBlock);
    }
    return make_kernel([&device, launches = std::move(launches), settings](const StepContext&) {
        for (const auto& [table, blocks] : launches)
            launch(device, update<kRule, W, kMost>, dim3(static_cast<unsigned>(blocks)), kThreads, table, settings);
    });
}
std::unique_ptr<Kernel> prepare_update(const KernelRequest& request, Device& device) {
    const UpdateStep how = update_step(request.problem.steps[0].op);
    const auto slots = static_cast<size_t>(slots_of(how.rule.rule));
    std::unique_ptr<Kernel> kernel;
    with_floating(dtype_of(request, request.problem.steps[0].inputs[0]), [&](auto zero) {
        using W = Wide<decltype(zero)>;
        std::vector<UpdateTensor<W>> tensors;
        for (const auto& step : request.problem.steps) {
            const auto in = [&](size_t i) { return data_of<const W>(request, step.inputs[i]); };
            UpdateTensor<W> tensor{};
            tensor.w = in(0);
            tensor.g = in(1);
            tensor.hyper = in(2);
            tensor.new_w = data_of<W>(request, step.outputs[0]);
            for (size_t k = 0; k < slots; ++k) {
                tensor.slots[k] = in(3 + k);
                tensor.new_slots[k] = data_of<W>(request, step.outputs[1 + k]);
            }
            if (how.rule.rule == Rule::Lars) {
                tensor.w_norm = in(3 + slots);
                tensor.g_norm = in(4 + slots);
            }
            if (how.clipped) tensor.scale = in(step.inputs.size() - 1);
            tensor.count = numel(operand(request, step.inputs[0]).desc.shape);
            if (tensor.count > 0) tensors.push_back(tensor);
        }
        with_rule(how.rule.rule, [&](auto rule) {
            const auto settings = settings_of<W>(how.rule);
            if (tensors.size() <= kFew)
                kernel = update_kernel<decltype(rule)::value, W, kFew>(device, tensors, settings);
            else
                kernel = update_kernel<decltype(rule)::value, W, kMany>(device, tensors, settings);
        });
    });
    return kernel;
}

bool accepts_apply(const Problem& p) { return steps_are<LambApplyOp>(p); }
std::vector<Candidate> apply_candidates(const Problem& p) {
    const auto& step = p.steps[0];
    return {candidate_of(p, {Layout::same(), {step.inputs[0], step.inputs[1], step.outputs[0]}, {{step.outputs[0], step.inputs[0]}}})};
}
std::unique_ptr<Kernel> prepare_apply(const KernelRequest& request, Device& device) {
    const auto& step = request.problem.steps[0];
    std::unique_ptr<Kernel> kernel;
    with_floating(dtype_of(request, step.inputs[0]), [&](auto zero) {
        using W = Wide<decltype(zero)>;
        const auto in = [&](size_t i) { return data_of<const W>(request, step.inputs[i]); };
        kernel = make_kernel([&device, w = in(0), r = in(1), hyper = in(2), w_norm = in(3), r_norm = in(4),
                              new_w = data_of<W>(request, step.outputs[0]),
                              count = numel(operand(request, step.inputs[0]).desc.shape)](const StepContext&) {
            if (count > 0) launch(device, lamb_apply<W>, grid_for(count), kThreads, w, r, hyper, w_norm, r_norm, new_w, count);
        });
    });
    return kernel;
}

bool accepts_squared_norm(const Problem& p) { return steps_are<SquaredNormOp>(p); }
std::vector<Candidate> squared_norm_candidates(const Problem& p) {
    return {candidate_of(p, {.layout = Layout::same(), .activations = {0}, .workspace_bytes = kSumWorkspace})};
}
std::unique_ptr<Kernel> prepare_squared_norm(const KernelRequest& request, Device& device) {
    std::unique_ptr<Kernel> kernel;
    with_floating(dtype_of(request, 0), [&](auto zero) {
        using T = decltype(zero);
        const SquaredSum<T> sum{data_of<const T>(request, 0), data_of<Wide<T>>(request, 1)};
        kernel = make_kernel([&device, sum, count = numel(request.inputs[0].desc.shape),
                              workspace = request.workspace](const StepContext&) { start_sum(device, sum, count, workspace); });
    });
    return kernel;
}

bool accepts_clip(const Problem& p) { return steps_are<ClipScaleOp>(p); }
std::vector<Candidate> clip_candidates(const Problem& p) { return only_plain(p); }
std::unique_ptr<Kernel> prepare_clip(const KernelRequest& request, Device& device) {
    std::unique_ptr<Kernel> kernel;
    with_floating(dtype_of(request, 0), [&](auto zero) {
        using W = Wide<decltype(zero)>;
        kernel = make_kernel([&device, squared = data_of<const W>(request, 0), scale = data_of<W>(request, 1),
                              limit = op_of<ClipScaleOp>(request.problem).limit](const StepContext&) {
            launch(device, clip_scale<W>, dim3(1), dim3(1), squared, scale, limit);
        });
    });
    return kernel;
}

}  // namespace

Family update_family() {
    return {"update",
            {{accepts_update, update_candidates, prepare_update},
             {accepts_apply, apply_candidates, prepare_apply},
             {accepts_squared_norm, squared_norm_candidates, prepare_squared_norm},
             {accepts_clip, clip_candidates, prepare_clip}}};
}

}  // namespace convoy::cuda
