#include <cmath>

#include "kernels/reference/norm.h"

namespace convoy::ref {

namespace {

// The denominator's base at channel c: k + alpha/size * (the sum of squares over the window of c). `x` points at channel 0 of one position
// and `stride` leads from channel to channel.
template <class T, class LrnLike>
double base_of(const LrnLike& op, const T* x, int64_t stride, int64_t channels, int64_t c) {
    const int64_t first = std::max<int64_t>(c - op.size / 2, 0), last = std::min(c - op.size / 2 + op.size, channels);
    double squares = 0;
    for (int64_t i = first; i < last; ++i) squares += static_cast<double>(x[i * stride]) * x[i * stride];
    return op.k + op.alpha / static_cast<double>(op.size) * squares;
}

}  // namespace

template <class T>
void reference(const LrnOp& op, const KernelArgs& args) {
    const auto x = const_view<T>(args.inputs[0]);
    const auto y = view<T>(args.outputs[0]);
    const int64_t channels = x.shape[1], inner = x.inner(2);
    parallel_for(args.threads, x.shape[0] * channels, [&](int64_t plane) {
        const int64_t c = plane % channels;
        const T* sample = x.data + (plane - c) * inner;
        for (int64_t i = 0; i < inner; ++i) {
            const double base = base_of(op, sample + i, inner, channels, c);
            y[plane * inner + i] = static_cast<T>(x[plane * inner + i] * std::pow(base, -op.beta));
        }
    });
}

// With b the bases: dx[c] = dy[c]*b[c]^-beta - 2*beta*alpha/size * x[c] * (the sum of dy[j]*x[j]*b[j]^(-beta-1) over all j whose window has
// c in it).
template <class T>
void reference(const LrnGradOp& op, const KernelArgs& args) {
    const auto x = const_view<T>(args.inputs[0]), dy = const_view<T>(args.inputs[1]);
    const auto dx = view<T>(args.outputs[0]);
    const int64_t channels = x.shape[1], inner = x.inner(2);
    const double factor = 2 * op.beta * op.alpha / static_cast<double>(op.size);
    parallel_for(args.threads, x.shape[0] * channels, [&](int64_t plane) {
        const int64_t c = plane % channels;
        // The windows that have c in them: the mirror image of the window of c.
        const int64_t first = std::max<int64_t>(c + op.size / 2 - op.size + 1, 0), last = std::min(c + op.size / 2 + 1, channels);
        for (int64_t i = 0; i < inner; ++i) {
            const int64_t start = (plane - c) * inner + i;  // channel 0 of this position
            double own = 0, through = 0;
            for (int64_t j = first; j < last; ++j) {
                const double base = base_of(op, x.data + start, inner, channels, j), power = std::pow(base, -op.beta);
                const double dy_j = dy[start + j * inner];
                through += dy_j * x[start + j * inner] * power / base;
                if (j == c) own = dy_j * power;
            }
            dx[start + c * inner] = static_cast<T>(own - factor * x[start + c * inner] * through);
        }
    });
}

template void reference<double>(const LrnOp&, const KernelArgs&);
template void reference<float>(const LrnOp&, const KernelArgs&);
template void reference<double>(const LrnGradOp&, const KernelArgs&);
template void reference<float>(const LrnGradOp&, const KernelArgs&);

}  // namespace convoy::ref
