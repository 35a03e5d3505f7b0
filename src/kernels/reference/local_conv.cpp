#include "kernels/reference/local_conv.h"

#include "kernels/reference/geometry.h"

namespace convoy::ref {

namespace {

// Offset of the weights of channel c for filter f at output o.
int64_t weights_at(const Geometry& g, int64_t channels, int64_t f, int64_t o, int64_t c) {
    return ((f * g.out_count() + o) * channels + c) * g.kernel_count();
}

}  // namespace

template <class T>
void reference(const LocalConvOp& op, const KernelArgs& args) {
    const auto x = const_view<T>(args.inputs[0]), w = const_view<T>(args.inputs[1]);
    const auto y = view<T>(args.outputs[0]);
    const auto g = geometry(op.window, x.shape, y.shape);
    const int64_t channels = x.shape[1], filters = y.shape[1];
    parallel_for(args.threads, y.shape[0] * filters, [&](int64_t plane) {
        const int64_t n = plane / filters, f = plane % filters;
        for_each_output(g, [&](int64_t o, int64_t o0, int64_t o1, int64_t o2) {
            T sum = 0;
            for (int64_t c = 0; c < channels; ++c) {
                const T* const xs = &x(n, c);
                const T* const ws = w.data + weights_at(g, channels, f, o, c);
                for_each_tap(g, o0, o1, o2, [&](int64_t position, int64_t i) { sum += xs[i] * ws[position]; });
            }
            y[plane * g.out_count() + o] = sum;
        });
    });
}

template <class T>
void reference(const LocalConvGradInputOp& op, const KernelArgs& args) {
    const auto dy = const_view<T>(args.inputs[0]), w = const_view<T>(args.inputs[1]);
    const auto dx = view<T>(args.outputs[0]);
    const auto g = geometry(op.window, dx.shape, dy.shape);
    const int64_t channels = dx.shape[1], filters = dy.shape[1];
    parallel_for(args.threads, dx.shape[0] * channels, [&](int64_t plane) {
        const int64_t n = plane / channels, c = plane % channels;
        T* const dxs = dx.data + plane * g.in_count();
        std::fill_n(dxs, g.in_count(), T{0});
        for (int64_t f = 0; f < filters; ++f)
            for_each_output(g, [&](int64_t o, int64_t o0, int64_t o1, int64_t o2) {
                const T gradient = (&dy(n, f))[o];
                const T* const ws = w.data + weights_at(g, channels, f, o, c);
                for_each_tap(g, o0, o1, o2, [&](int64_t position, int64_t i) { dxs[i] += gradient * ws[position]; });
            });
    });
}

template <class T>
void reference(const LocalConvGradWeightOp& op, const KernelArgs& args) {
    const auto x = const_view<T>(args.inputs[0]), dy = const_view<T>(args.inputs[1]);
    const auto dw = view<T>(args.outputs[0]);
    const auto g = geometry(op.window, x.shape, dy.shape);
    const int64_t batch = x.shape[0], channels = x.shape[1], filters = dy.shape[1];
    parallel_for(args.threads, filters * channels, [&](int64_t pair) {
        const int64_t f = pair / channels, c = pair % channels;
        for_each_output(g, [&](int64_t o, int64_t o0, int64_t o1, int64_t o2) {
            T* const dws = dw.data + weights_at(g, channels, f, o, c);
            std::fill_n(dws, g.kernel_count(), T{0});
            for (int64_t n = 0; n < batch; ++n) {
                const T gradient = (&dy(n, f))[o];
                const T* const xs = &x(n, c);
                for_each_tap(g, o0, o1, o2, [&](int64_t position, int64_t i) { dws[position] += gradient * xs[i]; });
            }
        });
    });
}

template void reference<double>(const LocalConvOp&, const KernelArgs&);
template void reference<float>(const LocalConvOp&, const KernelArgs&);
template void reference<double>(const LocalConvGradInputOp&, const KernelArgs&);
template void reference<float>(const LocalConvGradInputOp&, const KernelArgs&);
template void reference<double>(const LocalConvGradWeightOp&, const KernelArgs&);
template void reference<float>(const LocalConvGradWeightOp&, const KernelArgs&);

}  // namespace convoy::ref
