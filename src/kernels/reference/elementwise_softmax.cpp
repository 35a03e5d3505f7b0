#include <cmath>

#include "kernels/reference/elementwise.h"

namespace convoy::ref {

namespace {

// A tensor as lines along `axis`. The elements of a line are those from `first` below `last`, at distance `stride`.
struct Lines {
    int64_t length, stride, count;
    Lines(const Shape& shape, int axis)
        : length(shape[axis]), stride(product(shape, axis + 1, shape.size())), count(product(shape, 0, axis) * stride) {}
    // Calls fn(first, last) for every line.
    template <class Fn>
    void for_each(int threads, const Fn& fn) const {
        parallel_ranges(threads, count, kElementGrain / std::max<int64_t>(length, 1), [&](int64_t begin, int64_t end) {
            for (int64_t line = begin; line < end; ++line) {
                const int64_t first = line / stride * stride * length + line % stride;
                fn(first, first + length * stride);
            }
        });
    }
};

// It is taken away before exp, so that this cannot overflow.
template <class T>
T largest_of(const View<const T>& x, int64_t first, int64_t last, int64_t stride) {
    T largest = x[first];
    for (int64_t i = first; i < last; i += stride) largest = std::max(largest, x[i]);
    return largest;
}

}  // namespace

template <class T>
void reference(const SoftmaxOp& op, const KernelArgs& args) {
    const auto x = const_view<T>(args.inputs[0]);
    const auto y = view<T>(args.outputs[0]);
    const Lines lines(x.shape, op.axis);
    lines.for_each(args.threads, [&](int64_t first, int64_t last) {
        const T largest = largest_of(x, first, last, lines.stride);
        double sum = 0;
        for (int64_t i = first; i < last; i += lines.stride) sum += y[i] = std::exp(x[i] - largest);
        const T scale = static_cast<T>(1 / sum);
        for (int64_t i = first; i < last; i += lines.stride) y[i] *= scale;
    });
}

template <class T>
void reference(const SoftmaxGradOp& op, const KernelArgs& args) {
    const auto y = const_view<T>(args.inputs[0]), dy = const_view<T>(args.inputs[1]);
    const auto dx = view<T>(args.outputs[0]);
    const Lines lines(y.shape, op.axis);
    lines.for_each(args.threads, [&](int64_t first, int64_t last) {
        double sum = 0;
        for (int64_t i = first; i < last; i += lines.stride) sum += static_cast<double>(y[i]) * dy[i];
        for (int64_t i = first; i < last; i += lines.stride) dx[i] = y[i] * (dy[i] - static_cast<T>(sum));
    });
}

template <class T>
void reference(const LogSoftmaxOp& op, const KernelArgs& args) {
    const auto x = const_view<T>(args.inputs[0]);
    const auto y = view<T>(args.outputs[0]);
    const Lines lines(x.shape, op.axis);
    lines.for_each(args.threads, [&](int64_t first, int64_t last) {
        const T largest = largest_of(x, first, last, lines.stride);
        double sum = 0;
        for (int64_t i = first; i < last; i += lines.stride) sum += std::exp(static_cast<double>(x[i]) - largest);
        const T log_sum = static_cast<T>(std::log(sum));
        for (int64_t i = first; i < last; i += lines.stride) y[i] = x[i] - largest - log_sum;
    });
}

template <class T>
void reference(const LogSoftmaxGradOp& op, const KernelArgs& args) {
    const auto y = const_view<T>(args.inputs[0]), dy = const_view<T>(args.inputs[1]);
    const auto dx = view<T>(args.outputs[0]);
    const Lines lines(y.shape, op.axis);
    lines.for_each(args.threads, [&](int64_t first, int64_t last) {
        double sum = 0;
        for (int64_t i = first; i < last; i += lines.stride) sum += dy[i];
        for (int64_t i = first; i < last; i += lines.stride) dx[i] = dy[i] - std::exp(y[i]) * static_cast<T>(sum);
    });
}

template void reference<double>(const LogSoftmaxOp&, const KernelArgs&);
template void reference<float>(const LogSoftmaxOp&, const KernelArgs&);
template void reference<double>(const LogSoftmaxGradOp&, const KernelArgs&);
template void reference<float>(const LogSoftmaxGradOp&, const KernelArgs&);
template void reference<double>(const SoftmaxOp&, const KernelArgs&);
template void reference<float>(const SoftmaxOp&, const KernelArgs&);
template void reference<double>(const SoftmaxGradOp&, const KernelArgs&);
template void reference<float>(const SoftmaxGradOp&, const KernelArgs&);

}  // namespace convoy::ref
