// Maps and sums over flat memory: activations, sums and products of tensors, errors against a target.
#include "kernels/cpu/vector/families.h"
#include "kernels/cpu/vector/math.h"

namespace convoy::cpu::vec::CONVOY_ISA {

namespace {

constexpr float kHalfRoot2 = 0.70710678118654752440f;      // 1/sqrt(2)
constexpr float kNormalDensity = 0.39894228040143267794f;  // 1/sqrt(2*pi)
constexpr float kGeluScale = 0.79788456080286535588f;      // sqrt(2/pi)
constexpr float kGeluCubic = 0.044715f;

CONVOY_INLINE float gelu_tanh_part(float x) { return tanh_of(kGeluScale * (x + kGeluCubic * x * x * x)); }

// y = fn(x), in place or apart.
template <class Fn>
CONVOY_INLINE void map(const float* x, float* y, int64_t begin, int64_t end, const Fn& fn) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) y[i] = fn(x[i]);
}
template <class Fn>
CONVOY_INLINE void map2(const float* a, const float* b, float* y, int64_t begin, int64_t end, const Fn& fn) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) y[i] = fn(a[i], b[i]);
}

void unary(const UnaryArgs& a, int64_t begin, int64_t end) {
    const float alpha = a.alpha;
    switch (a.kind) {
        case UnaryKind::Relu: return map(a.x, a.y, begin, end, [](float x) { return x <= 0 ? 0 : x; });
        case UnaryKind::Relu6: return map(a.x, a.y, begin, end, [](float x) { return x <= 0 ? 0 : x >= 6 ? 6 : x; });
        case UnaryKind::LeakyRelu: return map(a.x, a.y, begin, end, [=](float x) { return x > 0 ? x : alpha * x; });
        case UnaryKind::Sigmoid: return map(a.x, a.y, begin, end, [](float x) { return sigmoid_of(x); });
        case UnaryKind::Tanh: return map(a.x, a.y, begin, end, [](float x) { return tanh_of(x); });
        case UnaryKind::Gelu: return map(a.x, a.y, begin, end, [](float x) { return 0.5f * x * (1 + erf_of(x * kHalfRoot2)); });
        case UnaryKind::GeluTanh: return map(a.x, a.y, begin, end, [](float x) { return 0.5f * x * (1 + gelu_tanh_part(x)); });
        case UnaryKind::Silu: return map(a.x, a.y, begin, end, [](float x) { return x * sigmoid_of(x); });
    }
}

void unary_grad(const UnaryArgs& a, int64_t begin, int64_t end) {
    const float alpha = a.alpha;
    const auto run = [&](const auto& fn) { map2(a.x, a.dy, a.y, begin, end, fn); };
    switch (a.kind) {
        case UnaryKind::Relu: return run([](float y, float dy) { return y <= 0 ? 0 : dy; });
        case UnaryKind::Relu6: return run([](float y, float dy) { return y <= 0 ? 0 : y >= 6 ? 0 : dy; });
        case UnaryKind::LeakyRelu: return run([=](float y, float dy) { return y > 0 ? dy : alpha * dy; });
        case UnaryKind::Sigmoid: return run([](float y, float dy) { return dy * y * (1 - y); });
        case UnaryKind::Tanh: return run([](float y, float dy) { return dy * (1 - y * y); });
        case UnaryKind::Gelu:
            return run(
                [](float x, float dy) { return dy * (0.5f * (1 + erf_of(x * kHalfRoot2)) + x * kNormalDensity * exp_of(-0.5f * x * x)); });
        case UnaryKind::GeluTanh:
            return run([](float x, float dy) {
                const float t = gelu_tanh_part(x), inner = kGeluScale * (1 + 3 * kGeluCubic * x * x);
                return dy * 0.5f * (1 + t + x * (1 - t * t) * inner);
            });
        case UnaryKind::Silu:
            return run([](float x, float dy) {
                const float s = sigmoid_of(x);
                return dy * s * (1 + x * (1 - s));
            });
    }
}

template <bool kRelu>
CONVOY_INLINE float finished(float sum) {
    return kRelu && sum <= 0 ? 0 : sum;
}

template <bool kRelu>
void add_all(const AddArgs& a, int64_t begin, int64_t end) {
    if (a.count == 2) return map2(a.inputs[0], a.inputs[1], a.y, begin, end, [](float x, float y) { return finished<kRelu>(x + y); });
    // By pieces, because y may be in the place of any input: all inputs of a piece are read before it is written.
    constexpr int64_t kPiece = 1024;
    alignas(64) float sum[kPiece];
    for (int64_t first = begin; first < end; first += kPiece) {
        const int64_t count = least(kPiece, end - first);
        map(a.inputs[0] + first, sum, 0, count, [](float x) { return x; });
        for (int64_t k = 1; k < a.count; ++k) map2(sum, a.inputs[k] + first, sum, 0, count, [](float x, float y) { return x + y; });
        map(sum, a.y + first, 0, count, finished<kRelu>);
    }
}

void add(const AddArgs& a, int64_t begin, int64_t end) { a.relu ? add_all<true>(a, begin, end) : add_all<false>(a, begin, end); }

void mul(const PairArgs& a, int64_t begin, int64_t end) {
    map2(a.a, a.b, a.y, begin, end, [](float x, float y) { return x * y; });
}

void scale(const PairArgs& a, int64_t begin, int64_t end) {
    const float factor = a.factor;
    map(a.a, a.y, begin, end, [=](float x) { return factor * x; });
}

// The sum of term(i): floats within a piece, over which there are many accumulators, then doubles.
template <class Fn>
CONVOY_INLINE double sum_of(int64_t begin, int64_t end, const Fn& term) {
    constexpr int64_t kPiece = 2048, kAccumulators = 64;
    double sum = 0;
    for (int64_t first = begin; first < end; first += kPiece) {
        const int64_t last = least(first + kPiece, end);
        alignas(64) float part[kAccumulators] = {};
        int64_t i = first;
        for (; i + kAccumulators <= last; i += kAccumulators)
#pragma omp simd
            for (int64_t k = 0; k < kAccumulators; ++k) part[k] += term(i + k);
        for (; i < last; ++i) part[i % kAccumulators] += term(i);
        for (const float p : part) sum += static_cast<double>(p);
    }
    return sum;
}

double squared_norm(const float* x, int64_t begin, int64_t end) {
    return sum_of(begin, end, [=](int64_t i) { return x[i] * x[i]; });
}

double error_loss(const PairArgs& a, int64_t begin, int64_t end) {
    const float *x = a.a, *t = a.b;
    if (a.squared) return sum_of(begin, end, [=](int64_t i) { return (x[i] - t[i]) * (x[i] - t[i]); });
    return sum_of(begin, end, [=](int64_t i) { return __builtin_fabsf(x[i] - t[i]); });
}

void error_grad(const PairArgs& a, int64_t begin, int64_t end) {
    const float factor = a.factor;
    if (a.squared) return map2(a.a, a.b, a.y, begin, end, [=](float x, float t) { return 2 * factor * (x - t); });
    map2(a.a, a.b, a.y, begin, end, [=](float x, float t) {
        const float error = x - t, sign = error > 0 ? 1.0f : error < 0 ? -1.0f : error;
        return factor * sign;
    });
}

}  // namespace

void enter_flat(VectorKernels& table) {
    table.unary = unary;
    table.unary_grad = unary_grad;
    table.add = add;
    table.mul = mul;
    table.scale = scale;
    table.squared_norm = squared_norm;
    table.error_loss = error_loss;
    table.error_grad = error_grad;
}

}  // namespace convoy::cpu::vec::CONVOY_ISA
