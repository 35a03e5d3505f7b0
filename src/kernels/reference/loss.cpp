#include "kernels/reference/loss.h"

#include <cmath>
#include <limits>

#include "kernels/reference/sum.h"

namespace convoy::ref {

namespace {

constexpr int64_t kGrain = 1024;  // elements that are worth a thread
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// logits[N, K, ..] and target[N, ..] as a list of targets, each with its line of K logits.
template <class T>
struct Lines {
    View<const T> logits;
    View<const int32_t> target;
    int64_t classes, stride;  // from one class to the next

    explicit Lines(const KernelArgs& args)
        : logits(const_view<T>(args.inputs[0])),
          target(const_view<int32_t>(args.inputs[1])),
          classes(logits.shape[1]),
          stride(logits.inner(2)) {
        CONVOY_CHECK(target.count * classes == logits.count, "{} targets for logits {}", target.count, to_string(logits.shape));
    }
    int64_t count() const { return target.count; }
    // The offset of class 0 of line i.
    int64_t first(int64_t i) const { return i / stride * classes * stride + i % stride; }
    double logit(int64_t i, int64_t k) const { return logits[first(i) + k * stride]; }
    bool is_class(int64_t t) const { return t >= 0 && t < classes; }

    double log_sum_exp(int64_t i) const {
        double largest = logit(i, 0), sum = 0;
        for (int64_t k = 1; k < classes; ++k) largest = std::max(largest, logit(i, k));
        for (int64_t k = 0; k < classes; ++k) sum += std::exp(logit(i, k) - largest);
        return largest + std::log(sum);
    }
};

// The optional inputs of cross-entropy.
template <class T>
struct Weights {
    const T* of_class = nullptr;
    double scale;  // the op's, divided by the normaliser

    Weights(const KernelArgs& args, double op_scale) : scale(op_scale) {
        if (args.inputs.size() > 2) of_class = const_view<T>(args.inputs[2]).data;
        if (args.inputs.size() > 3) scale /= const_view<T>(args.inputs[3])[0];
    }
    double operator[](int64_t k) const { return of_class ? of_class[k] : 1; }
};

}  // namespace

template <class T>
void reference(const CrossEntropyOp& op, const KernelArgs& args) {
    const Lines<T> lines(args);
    const Weights<T> weights(args, op.scale);
    const double smoothing = op.label_smoothing;
    const double sum = fixed_order_sum(args.threads, lines.count(), kGrain / lines.classes, [&](int64_t begin, int64_t end) {
        double part = 0;
        for (int64_t i = begin; i < end; ++i) {
            const int64_t t = lines.target[i];
            if (!lines.is_class(t)) return kNaN;
            const double normaliser = lines.log_sum_exp(i);
            part += weights[t] * (1 - smoothing) * (normaliser - lines.logit(i, t));
            // Left out when there is none, because 0 times an infinite term is not 0.
            if (smoothing == 0) continue;
            double spread = 0;
            for (int64_t k = 0; k < lines.classes; ++k) spread += weights[k] * (normaliser - lines.logit(i, k));
            part += smoothing / static_cast<double>(lines.classes) * spread;
        }
        return part;
    });
    view<T>(args.outputs[0])[0] = static_cast<T>(weights.scale * sum);
}

// A target's loss is the sum over k of q_k*(-logp_k), so its gradient is (the sum of q)*p_k - q_k.
template <class T>
void reference(const CrossEntropyGradOp& op, const KernelArgs& args) {
    const Lines<T> lines(args);
    const Weights<T> weights(args, op.scale);
    const auto dlogits = view<T>(args.outputs[0]);
    const double spread = op.label_smoothing / static_cast<double>(lines.classes);
    double weight_sum = 0;
    for (int64_t k = 0; k < lines.classes; ++k) weight_sum += weights[k];
    parallel_ranges(args.threads, lines.count(), kGrain / lines.classes, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const int64_t t = lines.target[i], first = lines.first(i);
            const double own = lines.is_class(t) ? weights[t] * (1 - op.label_smoothing) : kNaN;
            const double q_sum = own + spread * weight_sum, normaliser = lines.log_sum_exp(i);
            for (int64_t k = 0; k < lines.classes; ++k) {
                const double q = spread * weights[k] + (k == t ? own : 0);
                dlogits[first + k * lines.stride] = static_cast<T>(weights.scale * (q_sum * std::exp(lines.logit(i, k) - normaliser) - q));
            }
        }
    });
}

template <class T>
void reference(const NllOp& op, const KernelArgs& args) {
    const Lines<T> lines(args);
    const auto weights = const_view<T>(args.inputs[2]);
    const auto loss = view<T>(args.outputs[0]), weight = view<T>(args.outputs[1]);
    parallel_ranges(args.threads, lines.count(), kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const int64_t t = lines.target[i];
            if (t == op.ignored) {
                loss[i] = weight[i] = 0;
            } else if (lines.is_class(t)) {
                weight[i] = weights[t];
                loss[i] = static_cast<T>(-static_cast<double>(weights[t]) * lines.logit(i, t));
            } else {
                loss[i] = weight[i] = static_cast<T>(kNaN);
            }
        }
    });
}

template <class T>
void reference(const NllGradOp& op, const KernelArgs& args) {
    const auto dy = const_view<T>(args.inputs[0]), weights = const_view<T>(args.inputs[2]);
    const auto target = const_view<int32_t>(args.inputs[1]);
    const auto dx = view<T>(args.outputs[0]);
    const int64_t classes = dx.shape[1], stride = dx.inner(2);
    parallel_ranges(args.threads, target.count, kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const int64_t t = target[i], first = i / stride * classes * stride + i % stride;
            const bool known = t == op.ignored || (t >= 0 && t < classes);
            for (int64_t k = 0; k < classes; ++k) dx[first + k * stride] = known ? T{0} : static_cast<T>(kNaN);
            if (known && t != op.ignored) dx[first + t * stride] = -weights[t] * dy[i];
        }
    });
}

template <class T>
void reference(const TargetWeightOp&, const KernelArgs& args) {
    const auto target = const_view<int32_t>(args.inputs[0]);
    const auto weights = const_view<T>(args.inputs[1]);
    const double sum = fixed_order_sum(args.threads, target.count, kGrain, [&](int64_t begin, int64_t end) {
        double part = 0;
        for (int64_t i = begin; i < end; ++i) part += target[i] >= 0 && target[i] < weights.count ? weights[target[i]] : kNaN;
        return part;
    });
    view<T>(args.outputs[0])[0] = static_cast<T>(sum);
}

template <class T>
void reference(const ErrorLossOp& op, const KernelArgs& args) {
    const auto x = const_view<T>(args.inputs[0]), target = const_view<T>(args.inputs[1]);
    const double sum = fixed_order_sum(args.threads, x.count, kGrain, [&](int64_t begin, int64_t end) {
        double part = 0;
        for (int64_t i = begin; i < end; ++i) {
            const double error = static_cast<double>(x[i]) - target[i];
            part += op.kind == ErrorKind::Squared ? error * error : std::abs(error);
        }
        return part;
    });
    view<T>(args.outputs[0])[0] = static_cast<T>(op.scale * sum);
}

template <class T>
void reference(const ErrorLossGradOp& op, const KernelArgs& args) {
    const auto x = const_view<T>(args.inputs[0]), target = const_view<T>(args.inputs[1]);
    const auto dx = view<T>(args.outputs[0]);
    parallel_ranges(args.threads, x.count, kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const double error = static_cast<double>(x[i]) - target[i];
            dx[i] = static_cast<T>(op.scale * (op.kind == ErrorKind::Squared ? 2 * error : (error > 0 ? 1 : error < 0 ? -1 : error)));
        }
    });
}

template <class T>
void reference(const CorrectOp&, const KernelArgs& args) {
    const Lines<T> lines(args);
    const double sum = fixed_order_sum(args.threads, lines.count(), kGrain / lines.classes, [&](int64_t begin, int64_t end) {
        int64_t correct = 0;
        for (int64_t i = begin; i < end; ++i) {
            int64_t largest = 0;
            for (int64_t k = 1; k < lines.classes; ++k) {
                if (lines.logit(i, k) > lines.logit(i, largest)) largest = k;
            }
            correct += largest == lines.target[i];
        }
        return static_cast<double>(correct);
    });
    view<T>(args.outputs[0])[0] = static_cast<T>(sum);
}

template void reference<double>(const CrossEntropyOp&, const KernelArgs&);
template void reference<float>(const CrossEntropyOp&, const KernelArgs&);
template void reference<double>(const CrossEntropyGradOp&, const KernelArgs&);
template void reference<float>(const CrossEntropyGradOp&, const KernelArgs&);
template void reference<double>(const NllOp&, const KernelArgs&);
template void reference<float>(const NllOp&, const KernelArgs&);
template void reference<double>(const NllGradOp&, const KernelArgs&);
template void reference<float>(const NllGradOp&, const KernelArgs&);
template void reference<double>(const TargetWeightOp&, const KernelArgs&);
template void reference<float>(const TargetWeightOp&, const KernelArgs&);
template void reference<double>(const ErrorLossOp&, const KernelArgs&);
template void reference<float>(const ErrorLossOp&, const KernelArgs&);
template void reference<double>(const ErrorLossGradOp&, const KernelArgs&);
template void reference<float>(const ErrorLossGradOp&, const KernelArgs&);
template void reference<double>(const CorrectOp&, const KernelArgs&);
template void reference<float>(const CorrectOp&, const KernelArgs&);

}  // namespace convoy::ref
