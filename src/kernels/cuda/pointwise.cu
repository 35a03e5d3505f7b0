// Functions of one number that models from other tools use, and their slopes. Which one is decided inside the kernel: all elements decide alike, and
// these ops are too rare to be worth thirty kernels.
#include "kernels/cuda/family.h"
#include "kernels/cuda/map.cuh"

namespace convoy::cuda {

namespace {

template <class W>
__device__ W clamped(W x, W low, W high) {
    return x < low ? low : x > high ? high : x;  // NaN stays NaN
}

template <class W>
__device__ W value_of(Pointwise kind, W x, W a, W b) {
    switch (kind) {
        case Pointwise::Elu: return x > 0 ? x : a * expm1(x);
        case Pointwise::Softplus: return (x > 0 ? x : x <= 0 ? W{0} : x) + log1p(exp(-fabs(x)));
        case Pointwise::Softsign: return x / (1 + fabs(x));
        case Pointwise::HardSigmoid: return clamped(a * x + b, W{0}, W{1});
        case Pointwise::HardSwish: return x * clamped(x / 6 + static_cast<W>(0.5), W{0}, W{1});
        case Pointwise::ThresholdedRelu: return x > a ? x : x <= a ? W{0} : x;
        case Pointwise::Shrink: return x < -a ? x + b : x > a ? x - b : x == x ? W{0} : x;
        case Pointwise::Clip: return clamped(x, a, b);
        case Pointwise::Shift: return x + a;
        case Pointwise::Power: return pow(x, a);
        case Pointwise::Exp: return exp(x);
        case Pointwise::Log: return log(x);
        case Pointwise::Sqrt: return sqrt(x);
        case Pointwise::Reciprocal: return 1 / x;
        case Pointwise::Abs: return fabs(x);
        case Pointwise::Erf: return erf(x);
        case Pointwise::Sin: return sin(x);
        case Pointwise::Cos: return cos(x);
        case Pointwise::Tan: return tan(x);
        case Pointwise::Asin: return asin(x);
        case Pointwise::Acos: return acos(x);
        case Pointwise::Atan: return atan(x);
        case Pointwise::Sinh: return sinh(x);
        case Pointwise::Cosh: return cosh(x);
        case Pointwise::Asinh: return asinh(x);
        case Pointwise::Acosh: return acosh(x);
        case Pointwise::Atanh: return atanh(x);
        case Pointwise::Sign: return x > 0 ? W{1} : x < 0 ? W{-1} : x;
        case Pointwise::Floor: return floor(x);
        case Pointwise::Ceil: return ceil(x);
        case Pointwise::Round: return rint(x);  // halves to even
    }
    return x;
}

template <class W>
__device__ W slope_of(Pointwise kind, W x, W a, W b) {
    switch (kind) {
        case Pointwise::Elu: return x > 0 ? W{1} : a * exp(x);
        case Pointwise::Softplus: return 1 / (1 + exp(-x));
        case Pointwise::Softsign: return 1 / ((1 + fabs(x)) * (1 + fabs(x)));
        case Pointwise::HardSigmoid: return a * x + b > 0 && a * x + b < 1 ? a : W{0};
        case Pointwise::HardSwish: return x <= -3 ? W{0} : x >= 3 ? W{1} : x / 3 + static_cast<W>(0.5);
        case Pointwise::ThresholdedRelu: return x > a ? W{1} : W{0};
        case Pointwise::Shrink: return x < -a || x > a ? W{1} : W{0};
        case Pointwise::Clip: return x >= a && x <= b ? W{1} : W{0};
        case Pointwise::Shift: return W{1};
        case Pointwise::Power: return a == 0 ? W{0} : a * pow(x, a - 1);
        case Pointwise::Exp: return exp(x);
        case Pointwise::Log: return 1 / x;
        case Pointwise::Sqrt: return static_cast<W>(0.5) / sqrt(x);
        case Pointwise::Reciprocal: return -1 / (x * x);
        case Pointwise::Abs: return x > 0 ? W{1} : x < 0 ? W{-1} : W{0};
        case Pointwise::Erf: return static_cast<W>(1.12837916709551257390) * exp(-x * x);
        case Pointwise::Sin: return cos(x);
        case Pointwise::Cos: return -sin(x);
        case Pointwise::Tan: return 1 + tan(x) * tan(x);
        case Pointwise::Asin: return 1 / sqrt(1 - x * x);
        case Pointwise::Acos: return -1 / sqrt(1 - x * x);
        case Pointwise::Atan: return 1 / (1 + x * x);
        case Pointwise::Sinh: return cosh(x);
        case Pointwise::Cosh: return sinh(x);
        case Pointwise::Asinh: return 1 / sqrt(x * x + 1);
        case Pointwise::Acosh: return 1 / sqrt(x * x - 1);
        case Pointwise::Atanh: return 1 / (1 - x * x);
        case Pointwise::Sign:
        case Pointwise::Floor:
        case Pointwise::Ceil:
        case Pointwise::Round: return W{0};
    }
    return W{0};
}

template <class T>
struct ValueMap : Mapping<T, 1> {
    Pointwise kind;
    Wide<T> a, b;
    __device__ Wide<T> operator()(const Wide<T>* x) const { return value_of(kind, x[0], a, b); }
};
template <class T>
struct SlopeMap : Mapping<T, 2> {
    Pointwise kind;
    Wide<T> a, b;
    __device__ Wide<T> operator()(const Wide<T>* x) const { return x[1] * slope_of(kind, x[0], a, b); }
};

bool accepts_value(const Problem& p) { return steps_are<PointwiseOp>(p); }
std::vector<Candidate> value_candidates(const Problem& p) { return in_any_one_layout(p, {{output_of(p, 0), input_of(p, 0, 0)}}); }
std::unique_ptr<Kernel> prepare_value(const KernelRequest& request, Device& device) {
    const auto& step = request.problem.steps[0];
    const auto& op = std::get<PointwiseOp>(step.op);
    std::unique_ptr<Kernel> kernel;
    with_floating(dtype_of(request, step.inputs[0]), [&](auto zero) {
        using T = decltype(zero);
        const ValueMap<T> f{{{data_of<const T>(request, step.inputs[0])}, data_of<T>(request, step.outputs[0])},
                            op.kind,
                            static_cast<Wide<T>>(op.a),
                            static_cast<Wide<T>>(op.b)};
        kernel = map_kernel(device, f, numel(request.outputs[0].desc.shape));
    });
    return kernel;
}

bool accepts_slope(const Problem& p) { return steps_are<PointwiseGradOp>(p); }
std::vector<Candidate> slope_candidates(const Problem& p) {
    return in_any_one_layout(p, {{output_of(p, 0), input_of(p, 0, 0)}, {output_of(p, 0), input_of(p, 0, 1)}});
}
std::unique_ptr<Kernel> prepare_slope(const KernelRequest& request, Device& device) {
    const auto& step = request.problem.steps[0];
    const auto& op = std::get<PointwiseGradOp>(step.op);
    std::unique_ptr<Kernel> kernel;
    with_floating(dtype_of(request, step.inputs[0]), [&](auto zero) {
        using T = decltype(zero);
        const SlopeMap<T> f{
            {{data_of<const T>(request, step.inputs[0]), data_of<const T>(request, step.inputs[1])}, data_of<T>(request, step.outputs[0])},
            op.kind,
            static_cast<Wide<T>>(op.a),
            static_cast<Wide<T>>(op.b)};
        kernel = map_kernel(device, f, numel(request.outputs[0].desc.shape));
    });
    return kernel;
}

}  // namespace

Family pointwise_family() {
    return {"pointwise", {{accepts_value, value_candidates, prepare_value}, {accepts_slope, slope_candidates, prepare_slope}}};
}

}  // namespace convoy::cuda
