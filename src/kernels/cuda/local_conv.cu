// Convolutions with their own weights at every output position, as the definition says, on plain tensors. w is [F, out.., C, K..].
#include "kernels/cuda/family.h"
#include "kernels/cuda/positions.cuh"

namespace convoy::cuda {

namespace {

struct LocalConv {
    Volume x, y;
    Window3 window;
    __device__ int64_t kernel_count() const { return static_cast<int64_t>(window.kernel[0]) * window.kernel[1] * window.kernel[2]; }
    __device__ int64_t weight(int64_t f, const int (&o)[3], int64_t c, int place) const {
        const int64_t at = (o[0] * y.size[1] + o[1]) * y.size[2] + o[2];
        return ((f * y.size[0] * y.size[1] * y.size[2] + at) * x.c + c) * kernel_count() + place;
    }
    // Calls fn(offset of the input at channel c, place in the window) for every element of the window of o that is no padding.
    template <class Fn>
    __device__ void for_each_tap(const int (&o)[3], const Fn& fn) const {
        for (int k0 = 0; k0 < window.kernel[0]; ++k0)
            for (int k1 = 0; k1 < window.kernel[1]; ++k1)
                for (int k2 = 0; k2 < window.kernel[2]; ++k2) {
                    const int i0 = source_of(window, 0, o[0], k0), i1 = source_of(window, 1, o[1], k1), i2 = source_of(window, 2, o[2], k2);
                    if (i0 < 0 || i0 >= x.size[0] || i1 < 0 || i1 >= x.size[1] || i2 < 0 || i2 >= x.size[2]) continue;
                    fn(i0 * x.stride[0] + i1 * x.stride[1] + i2 * x.stride[2], (k0 * window.kernel[1] + k1) * window.kernel[2] + k2);
                }
    }
};

template <class T>
__global__ void local_forward(LocalConv s, const T* x, const Wide<T>* w, T* y, uint32_t count) {
    for (uint32_t i = first_item(); i < count; i = next_item(i, count)) {
        const Position p = position_of<false, 1>(s.y, i);
        Wide<T> sum = 0;
        for (int64_t c = 0; c < s.x.c; ++c) {
            const T* const from = x + p.n * s.x.stride_n + c * s.x.stride_c;
            s.for_each_tap(p.at, [&](int64_t at, int place) { sum += widen(from[at]) * w[s.weight(p.c, p.at, c, place)]; });
        }
        y[offset_of(s.y, p)] = narrow<T>(sum);
    }
}

template <class T>
__global__ void local_grad_input(LocalConv s, const T* dy, const Wide<T>* w, T* dx, uint32_t count) {
    for (uint32_t i = first_item(); i < count; i = next_item(i, count)) {
        const Position p = position_of<false, 1>(s.x, i);
        Wide<T> sum = 0;
        const Covering c0 = covering(s.window, 0, p.at[0], s.y.size[0]), c1 = covering(s.window, 1, p.at[1], s.y.size[1]),
                       c2 = covering(s.window, 2, p.at[2], s.y.size[2]);
        for (int64_t f = 0; f < s.y.c; ++f)
            for (int o0 = c0.first; o0 <= c0.last; ++o0)
                for (int o1 = c1.first; o1 <= c1.last; ++o1)
                    for (int o2 = c2.first; o2 <= c2.last; ++o2) {
                        const int k0 = tap_of(s.window, 0, p.at[0], o0), k1 = tap_of(s.window, 1, p.at[1], o1),
                                  k2 = tap_of(s.window, 2, p.at[2], o2);
                        if (k0 < 0 || k1 < 0 || k2 < 0) continue;
                        const int place = (k0 * s.window.kernel[1] + k1) * s.window.kernel[2] + k2;
                        sum += widen(dy[offset_of(s.y, {p.n, f, {o0, o1, o2}})]) * w[s.weight(f, {o0, o1, o2}, p.c, place)];
                    }
        dx[offset_of(s.x, p)] = narrow<T>(sum);
    }
}

// A thread has one output position, filter and channel, and all their weights.
template <class T>
__global__ void local_grad_weight(LocalConv s, const T* x, const T* dy, Wide<T>* dw, int64_t count) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
        const int64_t c = i % s.x.c, at = i / s.x.c, plane = s.y.size[0] * s.y.size[1] * s.y.size[2], f = at / plane, o = at % plane;
        const int place[3] = {static_cast<int>(o / s.y.size[2] / s.y.size[1]), static_cast<int>(o / s.y.size[2] % s.y.size[1]),
                              static_cast<int>(o % s.y.size[2])};
        for (int64_t k = 0; k < s.kernel_count(); ++k) dw[i * s.kernel_count() + k] = 0;
        for (int64_t n = 0; n < s.y.n; ++n) {
            const Wide<T> gradient = widen(dy[offset_of(s.y, {n, f, {place[0], place[1], place[2]}})]);
            const T* const from = x + n * s.x.stride_n + c * s.x.stride_c;
            s.for_each_tap(place, [&](int64_t offset, int k) { dw[i * s.kernel_count() + k] += gradient * widen(from[offset]); });
        }
    }
}

bool accepts(const Problem& p) {
    return steps_are<LocalConvOp>(p) || steps_are<LocalConvGradInputOp>(p) || steps_are<LocalConvGradWeightOp>(p);
}
std::vector<Candidate> candidates(const Problem& p) { return only_plain(p); }
std::unique_ptr<Kernel> prepare(const KernelRequest& request, Device& device) {
    const auto& step = request.problem.steps[0];
    const Operand &first = operand(request, step.inputs[0]), &second = operand(request, step.inputs[1]),
                  &result = operand(request, step.outputs[0]);
    const auto shapes = [](const Operand& x, const Operand& y, const Window& window) {
        return LocalConv{volume_of(x.desc.shape, x.layout), volume_of(y.desc.shape, y.layout), window3_of(window)};
    };
    std::unique_ptr<Kernel> kernel;
    with_floating(first.desc.dtype, [&](auto zero) {
        using T = decltype(zero);
        const T* const a = static_cast<const T*>(first.data);
        if (const auto* op = std::get_if<LocalConvOp>(&step.op)) {
            const LocalConv s = shapes(first, result, op->window);
            kernel = make_kernel([&device, s, a, w = static_cast<const Wide<T>*>(second.data), y = static_cast<T*>(result.data),
                                  count = packs_of(s.y, 1)](const StepContext&) {
                if (count > 0) launch(device, local_forward<T>, grid_for(count), kThreads, s, a, w, y, count);
            });
        } else if (const auto* dx = std::get_if<LocalConvGradInputOp>(&step.op)) {
            const LocalConv s = shapes(result, first, dx->window);
            kernel = make_kernel([&device, s, a, w = static_cast<const Wide<T>*>(second.data), out = static_cast<T*>(result.data),
                                  count = packs_of(s.x, 1)](const StepContext&) {
                if (count > 0) launch(device, local_grad_input<T>, grid_for(count), kThreads, s, a, w, out, count);
            });
        } else {
            const LocalConv s = shapes(first, second, std::get<LocalConvGradWeightOp>(step.op).window);
            kernel = make_kernel([&device, s, a, dy = static_cast<const T*>(second.data), dw = static_cast<Wide<T>*>(result.data),
                                  count = s.y.c * s.y.size[0] * s.y.size[1] * s.y.size[2] * s.x.c](const StepContext&) {
                if (count > 0) launch(device, local_grad_weight<T>, grid_for(count), kThreads, s, a, dy, dw, count);
            });
        }
    });
    return kernel;
}

}  // namespace

Family local_conv_family() { return {"local-conv", {{accepts, candidates, prepare}}}; }

}  // namespace convoy::cuda
