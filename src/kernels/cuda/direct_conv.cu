#include "kernels/cuda/direct_conv.h"

#include "kernels/cuda/positions.cuh"

namespace convoy::cuda {

namespace {

// Weights [F, C/groups, K..] as a volume: n counts filters, size the kernel.
struct Shapes {
    Volume x, w, y;
    Window3 window;
    int64_t filters_per_group;
};

template <class T, class Weight>
__global__ void __launch_bounds__(kThreads) direct_forward(Shapes s, const T* x, const Weight* w, T* y, uint32_t count) {
    using W = Wide<T>;
    for (uint32_t i = first_item(); i < count; i = next_item(i, count)) {
        const Position p = position_of<false, 1>(s.y, i);
        const int64_t first = p.c / s.filters_per_group * s.w.c;  // channel
        W sum = 0;
        for (int64_t c = 0; c < s.w.c; ++c)
            for (int k0 = 0; k0 < s.window.kernel[0]; ++k0) {
                const int i0 = source_of(s.window, 0, p.at[0], k0);
                if (i0 < 0 || i0 >= s.x.size[0]) continue;
                for (int k1 = 0; k1 < s.window.kernel[1]; ++k1) {
                    const int i1 = source_of(s.window, 1, p.at[1], k1);
                    if (i1 < 0 || i1 >= s.x.size[1]) continue;
                    for (int k2 = 0; k2 < s.window.kernel[2]; ++k2) {
                        const int i2 = source_of(s.window, 2, p.at[2], k2);
                        if (i2 < 0 || i2 >= s.x.size[2]) continue;
                        sum += widen(x[offset_of(s.x, {p.n, first + c, {i0, i1, i2}})]) *
                               static_cast<W>(widen(w[offset_of(s.w, {p.c, c, {k0, k1, k2}})]));
                    }
                }
            }
        y[offset_of(s.y, p)] = narrow<T>(sum);
    }
}

template <class T, class Weight>
__global__ void __launch_bounds__(kThreads) direct_grad_input(Shapes s, const T* dy, const Weight* w, T* dx, uint32_t count) {
    using W = Wide<T>;
    for (uint32_t i = first_item(); i < count; i = next_item(i, count)) {
        const Position p = position_of<false, 1>(s.x, i);
        const int64_t group = p.c / s.w.c, c = p.c % s.w.c;
        const Covering c0 = covering(s.window, 0, p.at[0], s.y.size[0]), c1 = covering(s.window, 1, p.at[1], s.y.size[1]),
                       c2 = covering(s.window, 2, p.at[2], s.y.size[2]);
        W sum = 0;
        for (int o0 = c0.first; o0 <= c0.last; ++o0) {
            const int k0 = tap_of(s.window, 0, p.at[0], o0);
            if (k0 < 0) continue;
            for (int o1 = c1.first; o1 <= c1.last; ++o1) {
                const int k1 = tap_of(s.window, 1, p.at[1], o1);
                if (k1 < 0) continue;
                for (int o2 = c2.first; o2 <= c2.last; ++o2) {
                    const int k2 = tap_of(s.window, 2, p.at[2], o2);
                    if (k2 < 0) continue;
                    for (int64_t f = group * s.filters_per_group; f < (group + 1) * s.filters_per_group; ++f)
                        sum += widen(dy[offset_of(s.y, {p.n, f, {o0, o1, o2}})]) *
                               static_cast<W>(widen(w[offset_of(s.w, {f, c, {k0, k1, k2}})]));
                }
            }
        }
        dx[offset_of(s.x, p)] = narrow<T>(sum);
    }
}

// A block has one weight.
template <class T, class Weight>
__global__ void __launch_bounds__(kThreads) direct_grad_weight(Shapes s, const T* x, const T* dy, Weight* dw) {
    const Position p = position_of<false, 1>(s.w, blockIdx.x);
    const int64_t channel = p.n / s.filters_per_group * s.w.c + p.c;
    const int64_t plane = s.y.size[0] * s.y.size[1] * s.y.size[2];
    double sum = 0;
    for (int64_t j = threadIdx.x; j < s.y.n * plane; j += blockDim.x) {
        const int64_t n = j / plane, o = j % plane;
        const int o2 = static_cast<int>(o % s.y.size[2]), o1 = static_cast<int>(o / s.y.size[2] % s.y.size[1]),
                  o0 = static_cast<int>(o / s.y.size[2] / s.y.size[1]);
        const int i0 = source_of(s.window, 0, o0, p.at[0]), i1 = source_of(s.window, 1, o1, p.at[1]),
                  i2 = source_of(s.window, 2, o2, p.at[2]);
        if (i0 < 0 || i0 >= s.x.size[0] || i1 < 0 || i1 >= s.x.size[1] || i2 < 0 || i2 >= s.x.size[2]) continue;
        sum += static_cast<double>(widen(x[offset_of(s.x, {n, channel, {i0, i1, i2}})])) *
               static_cast<double>(widen(dy[offset_of(s.y, {n, p.n, {o0, o1, o2}})]));
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) dw[offset_of(s.w, p)] = narrow<Weight>(static_cast<Wide<Weight>>(sum));
}

}  // namespace

void start_direct_conv(const Device& device, const DirectConv& conv) {
    const auto volume = [](const Operand& o) { return volume_of(o.desc.shape, o.layout); };
    const Shapes s{volume(conv.x), volume(conv.w), volume(conv.y), window3_of(conv.window),
                   std::max<int64_t>(1, conv.w.desc.shape[0] / conv.groups)};
    with_floating(conv.x.desc.dtype, [&](auto zero) {
        using T = decltype(zero);
        const auto with_weights = [&](auto weight) {
            using Weight = decltype(weight);
            auto *const x = static_cast<T*>(conv.x.data), *const y = static_cast<T*>(conv.y.data);
            auto* const w = static_cast<Weight*>(conv.w.data);
            if (conv.direction == Direction::Forward) {
                const uint32_t count = packs_of(s.y, 1);
                if (count > 0) launch(device, direct_forward<T, Weight>, grid_for(count), kThreads, s, x, w, y, count);
            } else if (conv.direction == Direction::GradInput) {
                const uint32_t count = packs_of(s.x, 1);
                if (count > 0) launch(device, direct_grad_input<T, Weight>, grid_for(count), kThreads, s, y, w, x, count);
            } else if (const uint32_t count = packs_of(s.w, 1); count > 0) {
                launch(device, direct_grad_weight<T, Weight>, dim3(count), kThreads, s, x, y, w);
            }
        };
        if (conv.w.desc.dtype == conv.x.desc.dtype)
            with_weights(T{});
        else
            with_weights(Wide<T>{});
    });
}

}  // namespace convoy::cuda
