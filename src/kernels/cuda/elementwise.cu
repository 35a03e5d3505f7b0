// Elementwise ops: activations and their gradients, sums, products, scaling. Operands lie alike, so memory is passed over as it lies.
#include "kernels/cuda/family.h"
#include "kernels/cuda/map.cuh"
#include "kernels/cuda/unary.cuh"

namespace convoy::cuda {

namespace {

template <class T, Unary kKind>
struct UnaryMap : Mapping<T, 1> {
    Wide<T> alpha;
    __device__ Wide<T> operator()(const Wide<T>* x) const { return unary<kKind>(x[0], alpha); }
};
template <class T, Unary kKind>
struct UnaryGradMap : Mapping<T, 2> {
    Wide<T> alpha;
    __device__ Wide<T> operator()(const Wide<T>* x) const { return unary_grad<kKind>(x[0], x[1], alpha); }
};
template <class T>
struct MulMap : Mapping<T, 2> {
    __device__ Wide<T> operator()(const Wide<T>* x) const { return x[0] * x[1]; }
};
template <class T>
struct ScaleMap : Mapping<T, 1> {
    Wide<T> factor;
    __device__ Wide<T> operator()(const Wide<T>* x) const { return factor * x[0]; }
};

constexpr int kMostTerms = 8;
// Of exactly kTerms terms, or with 0 of up to kMostTerms.
template <class T, int kTerms>
struct AddMap {
    using Element = T;
    static constexpr int kMost = kTerms > 0 ? kTerms : kMostTerms;
    const T* in[kMost];
    T* out;
    int terms;
    Rectifier after;
    __device__ __host__ int count() const { return kTerms > 0 ? kTerms : terms; }
    __device__ Wide<T> operator()(const Wide<T>* x) const {
        Wide<T> sum = x[0];
#pragma unroll
        for (int k = 1; k < kMost; ++k)
            if (k < count()) sum += x[k];
        return after(sum);
    }
};
template <class T>
using AnyAddMap = AddMap<T, 0>;

template <class T, int kTerms>
std::unique_ptr<Kernel> short_add(Device& device, const AnyAddMap<T>& any, int64_t count) {
    AddMap<T, kTerms> f{{}, any.out, kTerms, any.after};
    for (int k = 0; k < kTerms; ++k) f.in[k] = any.in[k];
    return map_kernel(device, f, count);
}

int64_t count_of(const KernelRequest& request) { return numel(request.outputs[0].desc.shape); }
int result(const Problem& p) { return output_of(p, p.steps.size() - 1); }

bool accepts_unary(const Problem& p) { return steps_are<UnaryOp>(p); }
std::vector<Candidate> one_input(const Problem& p) { return in_any_one_layout(p, {{result(p), input_of(p, 0, 0)}}); }
std::unique_ptr<Kernel> prepare_unary(const KernelRequest& request, Device& device) {
    const auto& op = op_of<UnaryOp>(request.problem);
    std::unique_ptr<Kernel> kernel;
    with_floating(dtype_of(request, 0), [&](auto zero) {
        using T = decltype(zero);
        with_unary(op.kind, [&](auto kind) {
            kernel = map_kernel(device,
                                UnaryMap<T, decltype(kind)::value>{{{data_of<const T>(request, 0)}, data_of<T>(request, 1)},
                                                                   static_cast<Wide<T>>(op.alpha)},
                                count_of(request));
        });
    });
    return kernel;
}

std::vector<Candidate> two_inputs(const Problem& p) {
    return in_any_one_layout(p, {{result(p), input_of(p, 0, 0)}, {result(p), input_of(p, 0, 1)}});
}
bool accepts_unary_grad(const Problem& p) { return steps_are<UnaryGradOp>(p); }
std::unique_ptr<Kernel> prepare_unary_grad(const KernelRequest& request, Device& device) {
    const auto& step = request.problem.steps[0];
    const auto& op = std::get<UnaryGradOp>(step.op);
    std::unique_ptr<Kernel> kernel;
    with_floating(dtype_of(request, 0), [&](auto zero) {
        using T = decltype(zero);
        with_unary(op.kind, [&](auto kind) {
            kernel = map_kernel(device,
                                UnaryGradMap<T, decltype(kind)::value>{
                                    {{data_of<const T>(request, step.inputs[0]), data_of<const T>(request, step.inputs[1])},
                                     data_of<T>(request, step.outputs[0])},
                                    static_cast<Wide<T>>(op.alpha)},
                                count_of(request));
        });
    });
    return kernel;
}

bool accepts_mul(const Problem& p) { return steps_are<MulOp>(p); }
std::unique_ptr<Kernel> prepare_mul(const KernelRequest& request, Device& device) {
    const auto& step = request.problem.steps[0];
    std::unique_ptr<Kernel> kernel;
    with_floating(dtype_of(request, 0), [&](auto zero) {
        using T = decltype(zero);
        kernel = map_kernel(device,
                            MulMap<T>{{{data_of<const T>(request, step.inputs[0]), data_of<const T>(request, step.inputs[1])},
                                       data_of<T>(request, step.outputs[0])}},
                            count_of(request));
    });
    return kernel;
}

bool accepts_scale(const Problem& p) { return steps_are<ScaleOp>(p); }
std::unique_ptr<Kernel> prepare_scale(const KernelRequest& request, Device& device) {
    std::unique_ptr<Kernel> kernel;
    with_floating(dtype_of(request, 0), [&](auto zero) {
        using T = decltype(zero);
        const auto factor = static_cast<Wide<T>>(op_of<ScaleOp>(request.problem).factor);
        kernel = map_kernel(device, ScaleMap<T>{{{data_of<const T>(request, 0)}, data_of<T>(request, 1)}, factor}, count_of(request));
    });
    return kernel;
}

// [Add] and [Add, rectifier].
bool accepts_add(const Problem& p) {
    if (steps_are<AddOp>(p)) return true;
    return steps_are<AddOp, UnaryOp>(p) && continues(p, 1) && is_rectifier(op_of<UnaryOp>(p, 1).kind);
}
std::vector<Candidate> add_candidates(const Problem& p) {
    std::vector<std::pair<int, int>> in_place;
    // A long sum is made in several passes, of which only the first may write over an input.
    if (p.steps[0].inputs.size() <= kMostTerms)
        for (const int t : p.steps[0].inputs) in_place.emplace_back(result(p), t);
    return in_any_one_layout(p, in_place);
}
std::unique_ptr<Kernel> prepare_add(const KernelRequest& request, Device& device) {
    const Problem& p = request.problem;
    std::unique_ptr<Kernel> kernel;
    with_floating(dtype_of(request, 0), [&](auto zero) {
        using T = decltype(zero);
        T* const out = data_of<T>(request, result(p));
        std::vector<AnyAddMap<T>> passes;
        // By step, because a tensor may be added to itself.
        for (const int t : p.steps[0].inputs) {
            if (passes.empty() || passes.back().terms == kMostTerms) {
                passes.push_back({{}, out, 0, {}});
                if (passes.size() > 1) passes.back().in[passes.back().terms++] = out;
            }
            passes.back().in[passes.back().terms++] = data_of<const T>(request, t);
        }
        if (p.steps.size() > 1) passes.back().after = rectifier_of(op_of<UnaryOp>(p, 1).kind, op_of<UnaryOp>(p, 1).alpha);
        // A residual network adds two terms all the time.
        if (passes.size() == 1 && passes[0].terms == 2) {
            kernel = short_add<T, 2>(device, passes[0], count_of(request));
            return;
        }
        if (passes.size() == 1 && passes[0].terms == 3) {
            kernel = short_add<T, 3>(device, passes[0], count_of(request));
            return;
        }
        kernel = make_kernel([&device, passes = std::move(passes), count = count_of(request)](const StepContext&) {
            for (const auto& pass : passes) start_map(device, pass, count);
        });
    });
    return kernel;
}

}  // namespace

Family elementwise_family() {
    return {"elementwise",
            {{accepts_unary, one_input, prepare_unary},
             {accepts_unary_grad, two_inputs, prepare_unary_grad},
             {accepts_mul, two_inputs, prepare_mul},
             {accepts_scale, one_input, prepare_scale},
             {accepts_add, add_candidates, prepare_add}}};
}

}  // namespace convoy::cuda
