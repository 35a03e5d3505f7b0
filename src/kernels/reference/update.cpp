#include "kernels/reference/update.h"

#include <array>
#include <cmath>

#include "kernels/reference/sum.h"

namespace convoy::ref {

namespace {

constexpr int64_t kGrain = 4096;  // elements that are worth a thread

template <class T>
double scalar(const Operand& operand) {
    return const_view<T>(operand)[0];
}

// What a rule reads besides the elements: w, g, hyper, `slots` slots, then norms (Lars), then the scale of a clipped gradient.
template <class T>
struct Common {
    double rate, step;
    T scale = 1;

    Common(const KernelArgs& args, bool clipped, size_t expected) {
        CONVOY_CHECK(args.inputs.size() == expected + (clipped ? 1 : 0), "an update has {} inputs", args.inputs.size());
        const auto hyper = const_view<T>(args.inputs[2]);
        rate = hyper[0];
        step = hyper[1];
        if (clipped) scale = const_view<T>(args.inputs.back())[0];
    }
};

// Calls new_w = rule(w, g, slots) for every element; the rule changes the slots.
template <size_t kSlots, class T, class Fn>
void update(const KernelArgs& args, T scale, const Fn& rule) {
    const auto w = const_view<T>(args.inputs[0]), g = const_view<T>(args.inputs[1]);
    const auto new_w = view<T>(args.outputs[0]);
    std::array<const T*, kSlots> slots{};
    std::array<T*, kSlots> new_slots{};
    for (size_t k = 0; k < kSlots; ++k) {
        slots[k] = const_view<T>(args.inputs[3 + k]).data;
        new_slots[k] = view<T>(args.outputs[1 + k]).data;
    }
    parallel_ranges(args.threads, w.count, kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            std::array<T, kSlots> values{};
            for (size_t k = 0; k < kSlots; ++k) values[k] = slots[k][i];
            new_w[i] = rule(w[i], scale * g[i], values);
            for (size_t k = 0; k < kSlots; ++k) new_slots[k][i] = values[k];
        }
    });
}

// The moments of Adam and its kin, and the quotient that they step along: mhat / (sqrt(vhat) + epsilon).
template <class T>
struct Moments {
    T beta1, beta2, rest1, rest2, correction1, root_correction2, epsilon;

    Moments(const UpdateRule& rule, double step)
        : beta1(static_cast<T>(rule.beta1)),
          beta2(static_cast<T>(rule.beta2)),
          rest1(static_cast<T>(1 - rule.beta1)),
          rest2(static_cast<T>(1 - rule.beta2)),
          correction1(static_cast<T>(1 - std::pow(rule.beta1, step))),
          root_correction2(static_cast<T>(std::sqrt(1 - std::pow(rule.beta2, step)))),
          epsilon(static_cast<T>(rule.epsilon)) {}
    T quotient(T g, std::array<T, 2>& slots) const {
        auto& [m, v] = slots;
        m = beta1 * m + rest1 * g;
        v = beta2 * v + rest2 * g * g;
        return m / correction1 / (std::sqrt(v) / root_correction2 + epsilon);
    }
};

// a/b, but 1 when one of the two norms is zero.
double trust_ratio(double norm, double other, double a, double b) { return norm == 0 || other == 0 ? 1 : a / b; }

}  // namespace

template <class T>
void reference(const SquaredNormOp&, const KernelArgs& args) {
    const auto x = const_view<T>(args.inputs[0]);
    const double sum = fixed_order_sum(args.threads, x.count, kGrain, [&](int64_t begin, int64_t end) {
        double part = 0;
        for (int64_t i = begin; i < end; ++i) part += static_cast<double>(x[i]) * x[i];
        return part;
    });
    view<T>(args.outputs[0])[0] = static_cast<T>(sum);
}

template <class T>
void reference(const ClipScaleOp& op, const KernelArgs& args) {
    const double limit = op.limit / (std::sqrt(scalar<T>(args.inputs[0])) + 1e-6);
    // In this order of arguments a NaN stays one.
    view<T>(args.outputs[0])[0] = static_cast<T>(std::min(limit, 1.0));
}

template <class T>
void reference(const UpdateOp& op, const KernelArgs& args) {
    const auto& r = op.rule;
    const auto slots = static_cast<size_t>(slots_of(r.rule));
    const bool lars = r.rule == Rule::Lars;
    const Common<T> common(args, op.clipped, 3 + slots + (lars ? 2 : 0));
    CONVOY_CHECK(args.outputs.size() == 1 + slots, "an update has {} outputs", args.outputs.size());
    const T scale = common.scale, rate = static_cast<T>(common.rate), decay = static_cast<T>(r.weight_decay);
    const T momentum = static_cast<T>(r.momentum), epsilon = static_cast<T>(r.epsilon);
    using None = std::array<T, 0>;
    using One = std::array<T, 1>;
    using Two = std::array<T, 2>;

    switch (r.rule) {
        case Rule::Sgd: return update<0>(args, scale, [=](T w, T g, None&) { return w - rate * (g + decay * w); });
        case Rule::Momentum:
            return update<1>(args, scale, [=](T w, T g, One& slot) {
                slot[0] = momentum * slot[0] + (g + decay * w);
                return w - rate * slot[0];
            });
        case Rule::Nesterov:
            return update<1>(args, scale, [=](T w, T g, One& slot) {
                g += decay * w;
                slot[0] = momentum * slot[0] + g;
                return w - rate * (g + momentum * slot[0]);
            });
        case Rule::AdaGrad:
            return update<1>(args, scale, [=](T w, T g, One& slot) {
                g += decay * w;
                slot[0] += g * g;
                return w - rate * g / (std::sqrt(slot[0]) + epsilon);
            });
        case Rule::RmsProp: {
            const T rho = static_cast<T>(r.rho), rest = static_cast<T>(1 - r.rho);
            return update<2>(args, scale, [=](T w, T g, Two& slot) {
                g += decay * w;
                slot[0] = rho * slot[0] + rest * g * g;
                // Without momentum the second slot is just this step's quotient.
                slot[1] = momentum * slot[1] + g / (std::sqrt(slot[0]) + epsilon);
                return w - rate * slot[1];
            });
        }
        case Rule::Adam: {
            const Moments<T> moments(r, common.step);
            return update<2>(args, scale, [=](T w, T g, Two& slot) { return w - rate * moments.quotient(g + decay * w, slot); });
        }
        case Rule::AdamW: {
            const Moments<T> moments(r, common.step);
            const T keep = static_cast<T>(1 - common.rate * r.weight_decay);
            return update<2>(args, scale, [=](T w, T g, Two& slot) { return keep * w - rate * moments.quotient(g, slot); });
        }
        case Rule::Lars: {
            const double w_norm = std::sqrt(scalar<T>(args.inputs[4])), g_norm = common.scale * std::sqrt(scalar<T>(args.inputs[5]));
            const T ratio = static_cast<T>(trust_ratio(w_norm, g_norm, r.trust * w_norm, g_norm + r.weight_decay * w_norm));
            return update<1>(args, scale, [=](T w, T g, One& slot) {
                slot[0] = momentum * slot[0] + ratio * (g + decay * w);
                return w - rate * slot[0];
            });
        }
        case Rule::Lamb: CONVOY_CHECK(false, "lamb is two ops: lamb_direction and lamb_apply");
    }
}

template <class T>
void reference(const LambDirectionOp& op, const KernelArgs& args) {
    const Common<T> common(args, op.clipped, 5);
    const T decay = static_cast<T>(op.rule.weight_decay);
    const Moments<T> moments(op.rule, common.step);
    update<2>(args, common.scale, [=](T w, T g, std::array<T, 2>& slot) { return moments.quotient(g, slot) + decay * w; });
}

template <class T>
void reference(const LambApplyOp&, const KernelArgs& args) {
    const auto w = const_view<T>(args.inputs[0]), r = const_view<T>(args.inputs[1]);
    const auto new_w = view<T>(args.outputs[0]);
    const double w_norm = std::sqrt(scalar<T>(args.inputs[3])), r_norm = std::sqrt(scalar<T>(args.inputs[4]));
    const T rate = static_cast<T>(scalar<T>(args.inputs[2]) * trust_ratio(w_norm, r_norm, w_norm, r_norm));
    parallel_ranges(args.threads, w.count, kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) new_w[i] = w[i] - rate * r[i];
    });
}

template void reference<double>(const SquaredNormOp&, const KernelArgs&);
template void reference<float>(const SquaredNormOp&, const KernelArgs&);
template void reference<double>(const ClipScaleOp&, const KernelArgs&);
template void reference<float>(const ClipScaleOp&, const KernelArgs&);
template void reference<double>(const UpdateOp&, const KernelArgs&);
template void reference<float>(const UpdateOp&, const KernelArgs&);
template void reference<double>(const LambDirectionOp&, const KernelArgs&);
template void reference<float>(const LambDirectionOp&, const KernelArgs&);
template void reference<double>(const LambApplyOp&, const KernelArgs&);
template void reference<float>(const LambApplyOp&, const KernelArgs&);

}  // namespace convoy::ref
