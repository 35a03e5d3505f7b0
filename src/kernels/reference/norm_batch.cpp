#include <cmath>

#include "kernels/reference/norm.h"

namespace convoy::ref {

namespace {

// [N, C, ..] with the spatial dims as one.
struct Extent {
    int64_t samples, channels, inner;
    explicit Extent(const Shape& shape) : samples(shape[0]), channels(shape[1]), inner(product(shape, 2, shape.size())) {}
    int64_t count() const { return samples * inner; }
    int64_t planes() const { return samples * channels; }
};

// The sum of term(offset) over all elements of a channel.
template <class Fn>
double channel_sum(const Extent& e, int64_t channel, const Fn& term) {
    double sum = 0;
    for (int64_t n = 0; n < e.samples; ++n) {
        const int64_t first = (n * e.channels + channel) * e.inner;
        for (int64_t i = first; i < first + e.inner; ++i) sum += term(i);
    }
    return sum;
}

template <class T>
double mean_of(const View<const T>& stats, int64_t channel) {
    return stats(0, channel);
}
template <class T>
double rstd_of(const View<const T>& stats, int64_t channel, double epsilon) {
    return 1 / std::sqrt(stats(1, channel) + epsilon);
}

}  // namespace

template <class T>
void reference(const BatchStatsOp&, const KernelArgs& args) {
    const auto x = const_view<T>(args.inputs[0]);
    const auto stats = view<T>(args.outputs[0]);
    const Extent e(x.shape);
    parallel_for(args.threads, e.channels, [&](int64_t c) {
        const double count = static_cast<double>(e.count());
        const double mean = channel_sum(e, c, [&](int64_t i) { return x[i]; }) / count;
        const double variance = channel_sum(e, c, [&](int64_t i) { return (x[i] - mean) * (x[i] - mean); }) / count;
        stats(0, c) = static_cast<T>(mean);
        stats(1, c) = static_cast<T>(variance);
    });
}

template <class T>
void reference(const RunningStatsOp&, const KernelArgs& args) {
    const auto mean = const_view<T>(args.inputs[0]), variance = const_view<T>(args.inputs[1]);
    const auto stats = view<T>(args.outputs[0]);
    for (int64_t c = 0; c < mean.count; ++c) {
        stats(0, c) = mean[c];
        stats(1, c) = variance[c];
    }
}

template <class T>
void reference(const RunningUpdateOp& op, const KernelArgs& args) {
    const auto mean = const_view<T>(args.inputs[0]), variance = const_view<T>(args.inputs[1]), stats = const_view<T>(args.inputs[2]);
    const auto new_mean = view<T>(args.outputs[0]), new_variance = view<T>(args.outputs[1]);
    const double count = static_cast<double>(op.count);
    const double unbias = op.count > 1 ? count / (count - 1) : 1;
    for (int64_t c = 0; c < mean.count; ++c) {
        new_mean[c] = static_cast<T>((1 - op.momentum) * mean[c] + op.momentum * stats(0, c));
        new_variance[c] = static_cast<T>((1 - op.momentum) * variance[c] + op.momentum * unbias * stats(1, c));
    }
}

template <class T>
void reference(const BatchNormalizeOp& op, const KernelArgs& args) {
    const auto x = const_view<T>(args.inputs[0]), stats = const_view<T>(args.inputs[1]);
    const auto gamma = const_view<T>(args.inputs[2]), beta = const_view<T>(args.inputs[3]);
    const auto y = view<T>(args.outputs[0]);
    const Extent e(x.shape);
    parallel_for(args.threads, e.planes(), [&](int64_t plane) {
        const int64_t c = plane % e.channels;
        const T mean = stats(0, c), scale = static_cast<T>(rstd_of(stats, c, op.epsilon) * gamma[c]), shift = beta[c];
        for (int64_t i = plane * e.inner; i < (plane + 1) * e.inner; ++i) y[i] = (x[i] - mean) * scale + shift;
    });
}

template <class T>
void reference(const BatchNormGradSumsOp& op, const KernelArgs& args) {
    const auto x = const_view<T>(args.inputs[0]), dy = const_view<T>(args.inputs[1]), stats = const_view<T>(args.inputs[2]);
    const auto dgamma = view<T>(args.outputs[0]), dbeta = view<T>(args.outputs[1]);
    const Extent e(x.shape);
    parallel_for(args.threads, e.channels, [&](int64_t c) {
        const double mean = mean_of(stats, c), rstd = rstd_of(stats, c, op.epsilon);
        dgamma[c] = static_cast<T>(rstd * channel_sum(e, c, [&](int64_t i) { return dy[i] * (x[i] - mean); }));
        dbeta[c] = static_cast<T>(channel_sum(e, c, [&](int64_t i) { return dy[i]; }));
    });
}

template <class T>
void reference(const BatchNormGradInputOp& op, const KernelArgs& args) {
    const auto x = const_view<T>(args.inputs[0]), dy = const_view<T>(args.inputs[1]), stats = const_view<T>(args.inputs[2]);
    const auto gamma = const_view<T>(args.inputs[3]), dgamma = const_view<T>(args.inputs[4]), dbeta = const_view<T>(args.inputs[5]);
    const auto dx = view<T>(args.outputs[0]);
    const Extent e(x.shape);
    const double count = static_cast<double>(op.count);
    parallel_for(args.threads, e.planes(), [&](int64_t plane) {
        const int64_t c = plane % e.channels;
        const double rstd = rstd_of(stats, c, op.epsilon);
        // dx = gamma*rstd*(dy - dbeta/count - xhat*dgamma/count), with xhat = (x - mean)*rstd.
        const T mean = stats(0, c), scale = static_cast<T>(gamma[c] * rstd), shift = static_cast<T>(dbeta[c] / count);
        const T slope = static_cast<T>(rstd * dgamma[c] / count);
        for (int64_t i = plane * e.inner; i < (plane + 1) * e.inner; ++i) dx[i] = scale * (dy[i] - shift - (x[i] - mean) * slope);
    });
}

template <class T>
void reference(const BatchNormFixedGradInputOp& op, const KernelArgs& args) {
    const auto dy = const_view<T>(args.inputs[0]), stats = const_view<T>(args.inputs[1]), gamma = const_view<T>(args.inputs[2]);
    const auto dx = view<T>(args.outputs[0]);
    const Extent e(dy.shape);
    parallel_for(args.threads, e.planes(), [&](int64_t plane) {
        const int64_t c = plane % e.channels;
        const T scale = static_cast<T>(gamma[c] * rstd_of(stats, c, op.epsilon));
        for (int64_t i = plane * e.inner; i < (plane + 1) * e.inner; ++i) dx[i] = scale * dy[i];
    });
}

template <class T>
void reference(const MergeStatsOp& op, const KernelArgs& args) {
    const auto parts = const_view<T>(args.inputs[0]);
    const auto stats = view<T>(args.outputs[0]);
    double total = 0;
    for (const int64_t count : op.counts) total += static_cast<double>(count);
    const auto over_parts = [&](const auto& term) {
        double sum = 0;
        for (size_t p = 0; p < op.counts.size(); ++p)
            if (op.counts[p] > 0) sum += static_cast<double>(op.counts[p]) / total * term(static_cast<int64_t>(p));
        return sum;
    };
    parallel_for(args.threads, stats.shape[1], [&](int64_t cell) {
        const double mean = over_parts([&](int64_t p) -> double { return parts(p, 0, cell); });
        const double variance = over_parts([&](int64_t p) {
            const double off = parts(p, 0, cell) - mean;
            return parts(p, 1, cell) + off * off;
        });
        stats(0, cell) = static_cast<T>(mean);
        stats(1, cell) = static_cast<T>(variance);
    });
}

template void reference<double>(const MergeStatsOp&, const KernelArgs&);
template void reference<float>(const MergeStatsOp&, const KernelArgs&);
template void reference<double>(const BatchStatsOp&, const KernelArgs&);
template void reference<float>(const BatchStatsOp&, const KernelArgs&);
template void reference<double>(const RunningStatsOp&, const KernelArgs&);
template void reference<float>(const RunningStatsOp&, const KernelArgs&);
template void reference<double>(const RunningUpdateOp&, const KernelArgs&);
template void reference<float>(const RunningUpdateOp&, const KernelArgs&);
template void reference<double>(const BatchNormalizeOp&, const KernelArgs&);
template void reference<float>(const BatchNormalizeOp&, const KernelArgs&);
template void reference<double>(const BatchNormGradSumsOp&, const KernelArgs&);
template void reference<float>(const BatchNormGradSumsOp&, const KernelArgs&);
template void reference<double>(const BatchNormGradInputOp&, const KernelArgs&);
template void reference<float>(const BatchNormGradInputOp&, const KernelArgs&);
template void reference<double>(const BatchNormFixedGradInputOp&, const KernelArgs&);
template void reference<float>(const BatchNormFixedGradInputOp&, const KernelArgs&);

}  // namespace convoy::ref
