// Activations: the unary ones, and PReLU with its learned slopes.
#include <cmath>

#include "kernels/reference/elementwise.h"
#include "kernels/reference/sum.h"

namespace convoy::ref {

namespace {

// y = fn(x).
template <class T, class Fn>
void map(const KernelArgs& args, const Fn& fn) {
    const auto x = const_view<T>(args.inputs[0]);
    const auto y = view<T>(args.outputs[0]);
    parallel_ranges(args.threads, y.count, kElementGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) y[i] = fn(x[i]);
    });
}

// dx = fn(saved, dy).
template <class T, class Fn>
void map_grad(const KernelArgs& args, const Fn& fn) {
    const auto saved = const_view<T>(args.inputs[0]), dy = const_view<T>(args.inputs[1]);
    const auto dx = view<T>(args.outputs[0]);
    parallel_ranges(args.threads, dx.count, kElementGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) dx[i] = fn(saved[i], dy[i]);
    });
}

template <class T>
T sigmoid(T x) {
    return 1 / (1 + std::exp(-x));
}

template <class T>
constexpr T kHalfRoot2 = static_cast<T>(0.70710678118654752440);  // 1/sqrt(2)
template <class T>
constexpr T kNormalDensity = static_cast<T>(0.39894228040143267794);  // 1/sqrt(2*pi)
template <class T>
constexpr T kGeluScale = static_cast<T>(0.79788456080286535588);  // sqrt(2/pi)
template <class T>
constexpr T kGeluCubic = static_cast<T>(0.044715);

template <class T>
T gelu_tanh_part(T x) {
    return std::tanh(kGeluScale<T> * (x + kGeluCubic<T> * x * x * x));
}

// to = from, times the slope where x is not positive. There is one slope for each channel, or one for all.
template <class T>
void bend(int threads, const View<const T>& x, const View<const T>& slope, const View<const T>& from, const View<T>& to) {
    const int64_t channels = x.shape[1], inner = x.inner(2);
    parallel_for(threads, x.shape[0] * channels, [&](int64_t plane) {
        const T a = slope[slope.count == 1 ? 0 : plane % channels];
        for (int64_t i = plane * inner; i < (plane + 1) * inner; ++i) to[i] = x[i] > 0 ? from[i] : a * from[i];
    });
}

}  // namespace

template <class T>
void reference(const UnaryOp& op, const KernelArgs& args) {
    const T alpha = static_cast<T>(op.alpha), half = static_cast<T>(0.5);
    switch (op.kind) {
        case Unary::Relu: return map<T>(args, [](T x) { return x <= 0 ? T{0} : x; });
        case Unary::Relu6: return map<T>(args, [](T x) { return x <= 0 ? T{0} : x >= 6 ? T{6} : x; });
        case Unary::LeakyRelu: return map<T>(args, [=](T x) { return x > 0 ? x : alpha * x; });
        case Unary::Sigmoid: return map<T>(args, [](T x) { return sigmoid(x); });
        case Unary::Tanh: return map<T>(args, [](T x) { return std::tanh(x); });
        case Unary::Gelu: return map<T>(args, [=](T x) { return half * x * (1 + std::erf(x * kHalfRoot2<T>)); });
        case Unary::GeluTanh: return map<T>(args, [=](T x) { return half * x * (1 + gelu_tanh_part(x)); });
        case Unary::Silu: return map<T>(args, [](T x) { return x * sigmoid(x); });
    }
}

template <class T>
void reference(const UnaryGradOp& op, const KernelArgs& args) {
    const T alpha = static_cast<T>(op.alpha), half = static_cast<T>(0.5);
    switch (op.kind) {
        case Unary::Relu: return map_grad<T>(args, [](T y, T dy) { return y <= 0 ? T{0} : dy; });
        case Unary::Relu6: return map_grad<T>(args, [](T y, T dy) { return y <= 0 || y >= 6 ? T{0} : dy; });
        case Unary::LeakyRelu: return map_grad<T>(args, [=](T y, T dy) { return y > 0 ? dy : alpha * dy; });
        case Unary::Sigmoid: return map_grad<T>(args, [](T y, T dy) { return dy * y * (1 - y); });
        case Unary::Tanh: return map_grad<T>(args, [](T y, T dy) { return dy * (1 - y * y); });
        case Unary::Gelu:
            return map_grad<T>(args, [=](T x, T dy) {
                const T below = half * (1 + std::erf(x * kHalfRoot2<T>));
                return dy * (below + x * kNormalDensity<T> * std::exp(-half * x * x));
            });
        case Unary::GeluTanh:
            return map_grad<T>(args, [=](T x, T dy) {
                const T t = gelu_tanh_part(x), inner = kGeluScale<T> * (1 + 3 * kGeluCubic<T> * x * x);
                return dy * half * (1 + t + x * (1 - t * t) * inner);
            });
        case Unary::Silu:
            return map_grad<T>(args, [](T x, T dy) {
                const T s = sigmoid(x);
                return dy * s * (1 + x * (1 - s));
            });
    }
}

template <class T>
void reference(const PReluOp&, const KernelArgs& args) {
    const auto x = const_view<T>(args.inputs[0]);
    bend<T>(args.threads, x, const_view<T>(args.inputs[1]), x, view<T>(args.outputs[0]));
}

template <class T>
void reference(const PReluGradInputOp&, const KernelArgs& args) {
    bend<T>(args.threads, const_view<T>(args.inputs[0]), const_view<T>(args.inputs[1]), const_view<T>(args.inputs[2]),
            view<T>(args.outputs[0]));
}

template <class T>
void reference(const PReluGradSlopeOp&, const KernelArgs& args) {
    const auto x = const_view<T>(args.inputs[0]), dy = const_view<T>(args.inputs[1]);
    const auto dslope = view<T>(args.outputs[0]);
    const auto sum_over = [&](int64_t begin, int64_t end) {
        double sum = 0;
        for (int64_t i = begin; i < end; ++i) sum += x[i] > 0 ? 0 : static_cast<double>(x[i]) * dy[i];
        return sum;
    };
    if (dslope.count == 1) {
        dslope[0] = static_cast<T>(fixed_order_sum(args.threads, x.count, kElementGrain, sum_over));
        return;
    }
    const int64_t channels = x.shape[1], inner = x.inner(2);
    parallel_for(args.threads, channels, [&](int64_t c) {
        double sum = 0;
        for (int64_t n = 0; n < x.shape[0]; ++n) sum += sum_over((n * channels + c) * inner, (n * channels + c + 1) * inner);
        dslope[c] = static_cast<T>(sum);
    });
}

template void reference<double>(const UnaryOp&, const KernelArgs&);
template void reference<float>(const UnaryOp&, const KernelArgs&);
template void reference<double>(const UnaryGradOp&, const KernelArgs&);
template void reference<float>(const UnaryGradOp&, const KernelArgs&);
template void reference<double>(const PReluOp&, const KernelArgs&);
template void reference<float>(const PReluOp&, const KernelArgs&);
template void reference<double>(const PReluGradInputOp&, const KernelArgs&);
template void reference<float>(const PReluGradInputOp&, const KernelArgs&);
template void reference<double>(const PReluGradSlopeOp&, const KernelArgs&);
template void reference<float>(const PReluGradSlopeOp&, const KernelArgs&);

}  // namespace convoy::ref
