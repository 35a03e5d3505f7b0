// The optimizers' rules: each reads weights, gradient and state once and writes weights and state once.
#include "kernels/cpu/vector/families.h"
#include "kernels/cpu/vector/vec.h"

namespace convoy::cpu::vec::CONVOY_ISA {

namespace {

// fn(w, g, slot0, slot1) returns the new weight and changes the slots; kSlots of them exist.
template <int kSlots, class Fn>
CONVOY_INLINE void for_all(const UpdateArgs& a, int64_t begin, int64_t end, const Fn& fn) {
    const float *w = a.w, *g = a.g, *slot0 = a.slot0, *slot1 = a.slot1, scale = a.scale;
    float *new_w = a.new_w, *new_slot0 = a.new_slot0, *new_slot1 = a.new_slot1;
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) {
        float s0 = 0, s1 = 0;
        if constexpr (kSlots > 0) s0 = slot0[i];
        if constexpr (kSlots > 1) s1 = slot1[i];
        new_w[i] = fn(w[i], scale * g[i], s0, s1);
        if constexpr (kSlots > 0) new_slot0[i] = s0;
        if constexpr (kSlots > 1) new_slot1[i] = s1;
    }
}

void update(const UpdateArgs& a, int64_t begin, int64_t end) {
    // Copies, so that the loops need not fear that a store changes them.
    const float rate = a.rate, decay = a.decay, momentum = a.momentum, epsilon = a.epsilon, ratio = a.ratio, rho = a.rho,
                rho_rest = a.rho_rest;
    const float beta1 = a.beta1, rest1 = a.rest1, beta2 = a.beta2, rest2 = a.rest2, keep = a.keep;
    const float correction1 = 1 / a.correction1, root_correction2 = 1 / a.root_correction2;
    // What Adam and AdamW step along.
    const auto quotient = [=](float g, float& m, float& v) {
        m = beta1 * m + rest1 * g;
        v = beta2 * v + rest2 * g * g;
        return m * correction1 / (__builtin_sqrtf(v) * root_correction2 + epsilon);
    };
    switch (a.kind) {
        case UpdateKind::Sgd:
            return for_all<0>(a, begin, end, [=](float w, float g, float&, float&) { return w - rate * (g + decay * w); });
        case UpdateKind::Momentum:
            return for_all<1>(a, begin, end, [=](float w, float g, float& v, float&) {
                v = momentum * v + (g + decay * w);
                return w - rate * v;
            });
        case UpdateKind::Nesterov:
            return for_all<1>(a, begin, end, [=](float w, float g, float& v, float&) {
                const float step = g + decay * w;
                v = momentum * v + step;
                return w - rate * (step + momentum * v);
            });
        case UpdateKind::AdaGrad:
            return for_all<1>(a, begin, end, [=](float w, float g, float& v, float&) {
                const float step = g + decay * w;
                v += step * step;
                return w - rate * step / (__builtin_sqrtf(v) + epsilon);
            });
        case UpdateKind::RmsProp:
            return for_all<2>(a, begin, end, [=](float w, float g, float& square, float& v) {
                const float step = g + decay * w;
                square = rho * square + rho_rest * step * step;
                v = momentum * v + step / (__builtin_sqrtf(square) + epsilon);
                return w - rate * v;
            });
        case UpdateKind::Adam:
            return for_all<2>(a, begin, end,
                              [=](float w, float g, float& m, float& v) { return w - rate * quotient(g + decay * w, m, v); });
        case UpdateKind::AdamW:
            return for_all<2>(a, begin, end, [=](float w, float g, float& m, float& v) { return keep * w - rate * quotient(g, m, v); });
        case UpdateKind::Lars:
            return for_all<1>(a, begin, end, [=](float w, float g, float& v, float&) {
                v = momentum * v + ratio * (g + decay * w);
                return w - rate * v;
            });
    }
}

}  // namespace

void enter_update(VectorKernels& table) { table.update = update; }

}  // namespace convoy::cpu::vec::CONVOY_ISA
