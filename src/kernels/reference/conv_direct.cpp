#include "kernels/reference/conv_direct.h"

#include "kernels/reference/geometry.h"

namespace convoy::ref {

namespace {

// Calls fn(xi, wi, yi) with the offsets of every product x * w that is summed into y.
template <class Fn>
void for_each_product(const Geometry& g, const Shape& x, const Shape& y, int64_t groups, const Fn& fn) {
    const int64_t batch = x[0], channels = x[1], filters = y[1];
    const int64_t group_channels = channels / groups, group_filters = filters / groups;
    for (int64_t n = 0; n < batch; ++n)
        for (int64_t f = 0; f < filters; ++f)
            for_each_output(g, [&](int64_t o, int64_t o0, int64_t o1, int64_t o2) {
                for (int64_t c = 0; c < group_channels; ++c) {
                    const int64_t channel = f / group_filters * group_channels + c;
                    for_each_tap(g, o0, o1, o2, [&](int64_t position, int64_t i) {
                        fn((n * channels + channel) * g.in_count() + i, (f * group_channels + c) * g.kernel_count() + position,
                           (n * filters + f) * g.out_count() + o);
                    });
                }
            });
}

}  // namespace

template <class T>
void conv_direct(const ConvOp& op, const KernelArgs& args) {
    const auto x = const_view<T>(args.inputs[0]), w = const_view<T>(args.inputs[1]);
    const auto y = view<T>(args.outputs[0]);
    std::fill_n(y.data, y.count, T{0});
    for_each_product(geometry(op.window, x.shape, y.shape), x.shape, y.shape, op.groups,
                     [&](int64_t xi, int64_t wi, int64_t yi) { y[yi] += x[xi] * w[wi]; });
}

template <class T>
void conv_direct(const ConvGradInputOp& op, const KernelArgs& args) {
    const auto dy = const_view<T>(args.inputs[0]), w = const_view<T>(args.inputs[1]);
    const auto dx = view<T>(args.outputs[0]);
    std::fill_n(dx.data, dx.count, T{0});
    for_each_product(geometry(op.window, dx.shape, dy.shape), dx.shape, dy.shape, op.groups,
                     [&](int64_t xi, int64_t wi, int64_t yi) { dx[xi] += dy[yi] * w[wi]; });
}

template <class T>
void conv_direct(const ConvGradWeightOp& op, const KernelArgs& args) {
    const auto x = const_view<T>(args.inputs[0]), dy = const_view<T>(args.inputs[1]);
    const auto dw = view<T>(args.outputs[0]);
    std::fill_n(dw.data, dw.count, T{0});
    for_each_product(geometry(op.window, x.shape, dy.shape), x.shape, dy.shape, op.groups,
                     [&](int64_t xi, int64_t wi, int64_t yi) { dw[wi] += x[xi] * dy[yi]; });
}

template void conv_direct<double>(const ConvOp&, const KernelArgs&);
template void conv_direct<float>(const ConvOp&, const KernelArgs&);
template void conv_direct<double>(const ConvGradInputOp&, const KernelArgs&);
template void conv_direct<float>(const ConvGradInputOp&, const KernelArgs&);
template void conv_direct<double>(const ConvGradWeightOp&, const KernelArgs&);
template void conv_direct<float>(const ConvGradWeightOp&, const KernelArgs&);

}  // namespace convoy::ref
