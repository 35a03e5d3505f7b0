// Functions of one number, each beside its slope.
#include <cmath>

#include "kernels/reference/elementwise.h"

namespace convoy::ref {

namespace {

template <class T>
T clamped(T x, T low, T high) {
    return x < low ? low : x > high ? high : x;  // NaN stays NaN
}

template <class T>
T value_of(Pointwise kind, T x, T a, T b) {
    switch (kind) {
        case Pointwise::Elu: return x > 0 ? x : a * std::expm1(x);
        case Pointwise::Softplus: return std::max(x, T{0}) + std::log1p(std::exp(-std::abs(x)));
        case Pointwise::Softsign: return x / (1 + std::abs(x));
        case Pointwise::HardSigmoid: return clamped(a * x + b, T{0}, T{1});
        case Pointwise::HardSwish: return x * clamped(x / 6 + static_cast<T>(0.5), T{0}, T{1});
        case Pointwise::ThresholdedRelu: return x > a ? x : x <= a ? T{0} : x;
        case Pointwise::Shrink: return x < -a ? x + b : x > a ? x - b : x == x ? T{0} : x;
        case Pointwise::Clip: return clamped(x, a, b);
        case Pointwise::Shift: return x + a;
        case Pointwise::Power: return std::pow(x, a);
        case Pointwise::Exp: return std::exp(x);
        case Pointwise::Log: return std::log(x);
        case Pointwise::Sqrt: return std::sqrt(x);
        case Pointwise::Reciprocal: return 1 / x;
        case Pointwise::Abs: return std::abs(x);
        case Pointwise::Erf: return std::erf(x);
        case Pointwise::Sin: return std::sin(x);
        case Pointwise::Cos: return std::cos(x);
        case Pointwise::Tan: return std::tan(x);
        case Pointwise::Asin: return std::asin(x);
        case Pointwise::Acos: return std::acos(x);
        case Pointwise::Atan: return std::atan(x);
        case Pointwise::Sinh: return std::sinh(x);
        case Pointwise::Cosh: return std::cosh(x);
        case Pointwise::Asinh: return std::asinh(x);
        case Pointwise::Acosh: return std::acosh(x);
        case Pointwise::Atanh: return std::atanh(x);
        case Pointwise::Sign: return x > 0 ? T{1} : x < 0 ? T{-1} : x;
        case Pointwise::Floor: return std::floor(x);
        case Pointwise::Ceil: return std::ceil(x);
        case Pointwise::Round: return std::nearbyint(x);  // halves to even
    }
    return x;
}

template <class T>
T slope_of(Pointwise kind, T x, T a, T b) {
    constexpr T kTwoOverRootPi = static_cast<T>(1.12837916709551257390);
    switch (kind) {
        case Pointwise::Elu: return x > 0 ? T{1} : a * std::exp(x);
        case Pointwise::Softplus: return 1 / (1 + std::exp(-x));
        case Pointwise::Softsign: return 1 / ((1 + std::abs(x)) * (1 + std::abs(x)));
        case Pointwise::HardSigmoid: return a * x + b > 0 && a * x + b < 1 ? a : T{0};
        case Pointwise::HardSwish: return x <= -3 ? T{0} : x >= 3 ? T{1} : x / 3 + static_cast<T>(0.5);
        case Pointwise::ThresholdedRelu: return x > a ? T{1} : T{0};
        case Pointwise::Shrink: return x < -a || x > a ? T{1} : T{0};
        case Pointwise::Clip: return x >= a && x <= b ? T{1} : T{0};
        case Pointwise::Shift: return T{1};
        case Pointwise::Power: return a == 0 ? T{0} : a * std::pow(x, a - 1);
        case Pointwise::Exp: return std::exp(x);
        case Pointwise::Log: return 1 / x;
        case Pointwise::Sqrt: return static_cast<T>(0.5) / std::sqrt(x);
        case Pointwise::Reciprocal: return -1 / (x * x);
        case Pointwise::Abs: return x > 0 ? T{1} : x < 0 ? T{-1} : T{0};
        case Pointwise::Erf: return kTwoOverRootPi * std::exp(-x * x);
        case Pointwise::Sin: return std::cos(x);
        case Pointwise::Cos: return -std::sin(x);
        case Pointwise::Tan: return 1 + std::tan(x) * std::tan(x);
        case Pointwise::Asin: return 1 / std::sqrt(1 - x * x);
        case Pointwise::Acos: return -1 / std::sqrt(1 - x * x);
        case Pointwise::Atan: return 1 / (1 + x * x);
        case Pointwise::Sinh: return std::cosh(x);
        case Pointwise::Cosh: return std::sinh(x);
        case Pointwise::Asinh: return 1 / std::sqrt(x * x + 1);
        case Pointwise::Acosh: return 1 / std::sqrt(x * x - 1);
        case Pointwise::Atanh: return 1 / (1 - x * x);
        case Pointwise::Sign:
        case Pointwise::Floor:
        case Pointwise::Ceil:
        case Pointwise::Round: return T{0};
    }
    return T{0};
}

}  // namespace

template <class T>
void reference(const PointwiseOp& op, const KernelArgs& args) {
    const auto x = const_view<T>(args.inputs[0]);
    const auto y = view<T>(args.outputs[0]);
    const T a = static_cast<T>(op.a), b = static_cast<T>(op.b);
    parallel_ranges(args.threads, y.count, kElementGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) y[i] = value_of(op.kind, x[i], a, b);
    });
}

template <class T>
void reference(const PointwiseGradOp& op, const KernelArgs& args) {
    const auto x = const_view<T>(args.inputs[0]), dy = const_view<T>(args.inputs[1]);
    const auto dx = view<T>(args.outputs[0]);
    const T a = static_cast<T>(op.a), b = static_cast<T>(op.b);
    parallel_ranges(args.threads, dx.count, kElementGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) dx[i] = dy[i] * slope_of(op.kind, x[i], a, b);
    });
}

template void reference<double>(const PointwiseOp&, const KernelArgs&);
template void reference<float>(const PointwiseOp&, const KernelArgs&);
template void reference<double>(const PointwiseGradOp&, const KernelArgs&);
template void reference<float>(const PointwiseGradOp&, const KernelArgs&);

}  // namespace convoy::ref
