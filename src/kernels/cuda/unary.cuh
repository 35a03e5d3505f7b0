// The unary activations and their gradients, as device functions of the wide type.
#pragma once

#include "model/op.h"

namespace convoy::cuda {

template <class W>
__device__ __forceinline__ W sigmoid_of(W x) {
    return W{1} / (W{1} + exp(-x));
}
template <class W>
__device__ __forceinline__ W gelu_tanh_part(W x) {
    return tanh(static_cast<W>(0.79788456080286535588) * (x + static_cast<W>(0.044715) * x * x * x));
}

template <Unary kKind, class W>
__device__ __forceinline__ W unary(W x, W alpha) {
    constexpr W half = static_cast<W>(0.5);
    if constexpr (kKind == Unary::Relu) return x <= 0 ? W{0} : x;
    if constexpr (kKind == Unary::Relu6) return x <= 0 ? W{0} : x >= 6 ? W{6} : x;
    if constexpr (kKind == Unary::LeakyRelu) return x > 0 ? x : alpha * x;
    if constexpr (kKind == Unary::Sigmoid) return sigmoid_of(x);
    if constexpr (kKind == Unary::Tanh) return tanh(x);
    if constexpr (kKind == Unary::Gelu) return half * x * (W{1} + erf(x * static_cast<W>(0.70710678118654752440)));
    if constexpr (kKind == Unary::GeluTanh) return half * x * (W{1} + gelu_tanh_part(x));
    if constexpr (kKind == Unary::Silu) return x * sigmoid_of(x);
}

// `saved` is the output where grad_reads_output(kKind), else the input.
template <Unary kKind, class W>
__device__ __forceinline__ W unary_grad(W saved, W dy, W alpha) {
    constexpr W half = static_cast<W>(0.5);
    if constexpr (kKind == Unary::Relu) return saved <= 0 ? W{0} : dy;
    if constexpr (kKind == Unary::Relu6) return saved <= 0 || saved >= 6 ? W{0} : dy;
    if constexpr (kKind == Unary::LeakyRelu) return saved > 0 ? dy : alpha * dy;
    if constexpr (kKind == Unary::Sigmoid) return dy * saved * (W{1} - saved);
    if constexpr (kKind == Unary::Tanh) return dy * (W{1} - saved * saved);
    if constexpr (kKind == Unary::Gelu) {
        const W below = half * (W{1} + erf(saved * static_cast<W>(0.70710678118654752440)));
        return dy * (below + saved * static_cast<W>(0.39894228040143267794) * exp(-half * saved * saved));
    }
    if constexpr (kKind == Unary::GeluTanh) {
        const W t = gelu_tanh_part(saved);
        const W inner = static_cast<W>(0.79788456080286535588) * (W{1} + W{3} * static_cast<W>(0.044715) * saved * saved);
        return dy * half * (W{1} + t + saved * (W{1} - t * t) * inner);
    }
    if constexpr (kKind == Unary::Silu) {
        const W s = sigmoid_of(saved);
        return dy * s * (W{1} + saved * (W{1} - s));
    }
}

// Calls fn(std::integral_constant<Unary, kind>).
template <class Fn>
void with_unary(Unary kind, const Fn& fn) {
    switch (kind) {
        case Unary::Relu: return fn(std::integral_constant<Unary, Unary::Relu>{});
        case Unary::Relu6: return fn(std::integral_constant<Unary, Unary::Relu6>{});
        case Unary::LeakyRelu: return fn(std::integral_constant<Unary, Unary::LeakyRelu>{});
        case Unary::Sigmoid: return fn(std::integral_constant<Unary, Unary::Sigmoid>{});
        case Unary::Tanh: return fn(std::integral_constant<Unary, Unary::Tanh>{});
        case Unary::Gelu: return fn(std::integral_constant<Unary, Unary::Gelu>{});
        case Unary::GeluTanh: return fn(std::integral_constant<Unary, Unary::GeluTanh>{});
        case Unary::Silu: return fn(std::integral_constant<Unary, Unary::Silu>{});
    }
}

// The piecewise linear ones, which the passes with a number per channel do at their end: below zero the slope is another. A slope of 1 is none.
struct Rectifier {
    double below = 1;
    bool zero = false;  // a ReLU: exactly 0 below zero, whatever x is

    template <class W>
    __device__ W operator()(W x) const {
        return x > 0 ? x : zero ? (x <= 0 ? W{0} : x) : static_cast<W>(below) * x;
    }
    // The gradient, from the output.
    template <class W>
    __device__ W grad(W y, W dy) const {
        return y > 0 ? dy : zero ? (y <= 0 ? W{0} : dy) : static_cast<W>(below) * dy;
    }
};
inline bool is_rectifier(Unary kind) { return kind == Unary::Relu || kind == Unary::LeakyRelu; }
inline Rectifier rectifier_of(Unary kind, double alpha) { return {alpha, kind == Unary::Relu}; }

}  // namespace convoy::cuda
