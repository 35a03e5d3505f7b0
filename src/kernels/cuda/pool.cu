// Pooling by windows. Gradients gather: every input sums over the windows that hold it, so nothing is added by two threads.
#include "kernels/cuda/family.h"
#include "kernels/cuda/positions.cuh"
#include "kernels/cuda/unary.cuh"

namespace convoy::cuda {

namespace {

template <class T, class Where, int V, bool kLast>
__global__ void __launch_bounds__(kThreads) max_pool(Volume x, Volume y, Window3 w, const T* xs, T* ys, Where* where, uint32_t packs) {
    using W = Wide<T>;
    for (uint32_t i = first_item(); i < packs; i = next_item(i, packs)) {
        const Position p = position_of<kLast, V>(y, i);
        W best[V];
        int at[V];
#pragma unroll
        for (int v = 0; v < V; ++v) {
            best[v] = -static_cast<W>(INFINITY);
            at[v] = -1;
        }
        const int64_t sample = p.n * x.stride_n + p.c * x.stride_c;
        for (int k0 = 0; k0 < w.kernel[0]; ++k0) {
            const int i0 = source_of(w, 0, p.at[0], k0);
            if (i0 < 0 || i0 >= x.size[0]) continue;
            for (int k1 = 0; k1 < w.kernel[1]; ++k1) {
                const int i1 = source_of(w, 1, p.at[1], k1);
                if (i1 < 0 || i1 >= x.size[1]) continue;
                for (int k2 = 0; k2 < w.kernel[2]; ++k2) {
                    const int i2 = source_of(w, 2, p.at[2], k2);
                    if (i2 < 0 || i2 >= x.size[2]) continue;
                    const auto in = load<V>(xs + sample + i0 * x.stride[0] + i1 * x.stride[1] + i2 * x.stride[2]);
                    const int place = (k0 * w.kernel[1] + k1) * w.kernel[2] + k2;
#pragma unroll
                    for (int v = 0; v < V; ++v) {
                        const W value = widen(in.at[v]);
                        // A NaN wins, so that it is seen at the end; the first of equals wins.
                        if (at[v] >= 0 && !(value > best[v]) && !(value != value && best[v] == best[v])) continue;
                        best[v] = value;
                        at[v] = place;
                    }
                }
            }
        }
        Pack<T, V> out;
        Pack<Where, V> places;
#pragma unroll
        for (int v = 0; v < V; ++v) {
            out.at[v] = narrow<T>(best[v]);
            places.at[v] = static_cast<Where>(max(at[v], 0));
        }
        const int64_t to = offset_of(y, p);
        store<V>(ys + to, out);
        store<V>(where + to, places);
    }
}

// With kMasked dy first passes the gradient of a rectifier, of which `saved` are the outputs that were the maxima.
template <class T, class Where, int V, bool kLast, bool kMasked>
__global__ void __launch_bounds__(kThreads) max_pool_grad(Volume x, Volume y, Window3 w, const T* dys, const Where* where, const T* saved,
                                                          T* dxs, Rectifier rectifier, uint32_t packs) {
    using W = Wide<T>;
    for (uint32_t i = first_item(); i < packs; i = next_item(i, packs)) {
        const Position p = position_of<kLast, V>(x, i);
        W sums[V] = {};
        const int64_t sample = p.n * y.stride_n + p.c * y.stride_c;
        const Covering c0 = covering(w, 0, p.at[0], y.size[0]), c1 = covering(w, 1, p.at[1], y.size[1]),
                       c2 = covering(w, 2, p.at[2], y.size[2]);
        for (int o0 = c0.first; o0 <= c0.last; ++o0) {
            const int k0 = tap_of(w, 0, p.at[0], o0);
            if (k0 < 0) continue;
            for (int o1 = c1.first; o1 <= c1.last; ++o1) {
                const int k1 = tap_of(w, 1, p.at[1], o1);
                if (k1 < 0) continue;
                for (int o2 = c2.first; o2 <= c2.last; ++o2) {
                    const int k2 = tap_of(w, 2, p.at[2], o2);
                    if (k2 < 0) continue;
                    const int64_t from = sample + o0 * y.stride[0] + o1 * y.stride[1] + o2 * y.stride[2];
                    const int place = (k0 * w.kernel[1] + k1) * w.kernel[2] + k2;
                    const auto places = load<V>(where + from);
                    const auto dy = load<V>(dys + from);
                    Pack<T, V> maxima;
                    if constexpr (kMasked) maxima = load<V>(saved + from);
#pragma unroll
                    for (int v = 0; v < V; ++v) {
                        if (static_cast<int>(places.at[v]) != place) continue;
                        const W passed = widen(dy.at[v]);
                        sums[v] += kMasked ? rectifier.grad(widen(maxima.at[v]), passed) : passed;
                    }
                }
            }
        }
        const int64_t to = offset_of(x, p);
        Pack<T, V> out;
#pragma unroll
        for (int v = 0; v < V; ++v) out.at[v] = narrow<T>(sums[v]);
        store<V>(dxs + to, out);
    }
}

// The same where lines lie together: V neighbours of a line share the windows above them. Without dilation; `x` counts packs in its lines.
template <class T, class Where, int V, bool kMasked>
__global__ void __launch_bounds__(kThreads) max_pool_grad_lines(Volume x, Volume y, Window3 w, const T* dys, const Where* where,
                                                                const T* saved, T* dxs, Rectifier rectifier, uint32_t packs) {
    using W = Wide<T>;
    for (uint32_t i = first_item(); i < packs; i = next_item(i, packs)) {
        Position p = position_of<false, 1>(x, i);
        p.at[2] *= V;
        W sums[V] = {};
        const int64_t sample = p.n * y.stride_n + p.c * y.stride_c;
        const Covering c0 = covering(w, 0, p.at[0], y.size[0]), c1 = covering(w, 1, p.at[1], y.size[1]);
        const int first = covering(w, 2, p.at[2], y.size[2]).first, last = covering(w, 2, p.at[2] + V - 1, y.size[2]).last;
        for (int o0 = c0.first; o0 <= c0.last; ++o0) {
            const int k0 = p.at[0] - source_of(w, 0, o0, 0);
            for (int o1 = c1.first; o1 <= c1.last; ++o1) {
                const int k1 = p.at[1] - source_of(w, 1, o1, 0), row = (k0 * w.kernel[1] + k1) * w.kernel[2];
                const int64_t line = sample + o0 * y.stride[0] + o1 * y.stride[1];
                for (int o2 = first; o2 <= last; ++o2) {
                    const int64_t from = line + o2 * y.stride[2];
                    const int k2 = static_cast<int>(where[from]) - row;
                    if (k2 < 0 || k2 >= w.kernel[2]) continue;
                    W value = widen(dys[from]);
                    if constexpr (kMasked) value = rectifier.grad(widen(saved[from]), value);
                    const int at = source_of(w, 2, o2, k2) - p.at[2];
#pragma unroll
                    for (int v = 0; v < V; ++v)
                        if (v == at) sums[v] += value;
                }
            }
        }
        Pack<T, V> out;
#pragma unroll
        for (int v = 0; v < V; ++v) out.at[v] = narrow<T>(sums[v]);
        store<V>(dxs + offset_of(x, p), out);
    }
}

// Where each maximum lies in the whole input, row-major over [N, C, input]; the spatial dims may count the other way round.
struct WholeInput {
    int64_t first_sample, first_channel, channels;  // of the part at hand; channels of the whole
    int64_t size[3];
    bool columns_first;
};
template <class Where>
__global__ void __launch_bounds__(kThreads)
    max_index(Volume y, Window3 w, WholeInput whole, const Where* where, int32_t* places, uint32_t count) {
    for (uint32_t i = first_item(); i < count; i = next_item(i, count)) {
        const Position p = position_of<false, 1>(y, i);
        const int at = static_cast<int>(where[i]), plane = w.kernel[1] * w.kernel[2];
        const int64_t i0 = source_of(w, 0, p.at[0], at / plane), i1 = source_of(w, 1, p.at[1], at / w.kernel[2] % w.kernel[1]),
                      i2 = source_of(w, 2, p.at[2], at % w.kernel[2]);
        const int64_t before =
            ((p.n + whole.first_sample) * whole.channels + p.c + whole.first_channel) * whole.size[0] * whole.size[1] * whole.size[2];
        const int64_t place =
            whole.columns_first ? (i2 * whole.size[1] + i1) * whole.size[0] + i0 : (i0 * whole.size[1] + i1) * whole.size[2] + i2;
        places[i] = static_cast<int32_t>(before + place);
    }
}

// What counts in the divisor of output o along dim d: elements of the input, and of the padding if it counts, never what lies past both.
__device__ __forceinline__ int counted(const Window3& w, int64_t size, bool padding, int d, int o) {
    const int begin = padding ? min(-w.pad[d], 0) : 0, end = static_cast<int>(size) + (padding ? max(w.pad_hi[d], 0) : 0);
    const int at_first = source_of(w, d, o, 0);
    if (w.dilation[d] == 1) return max(min(at_first + w.kernel[d], end) - max(at_first, begin), 0);
    int count = 0;
    for (int k = 0; k < w.kernel[d]; ++k) {
        const int at = source_of(w, d, o, k);
        count += at >= begin && at < end;
    }
    return count;
}

template <class T, int V, bool kLast>
__global__ void __launch_bounds__(kThreads) average_pool(Volume x, Volume y, Window3 w, bool padding, const T* xs, T* ys, uint32_t packs) {
    using W = Wide<T>;
    for (uint32_t i = first_item(); i < packs; i = next_item(i, packs)) {
        const Position p = position_of<kLast, V>(y, i);
        W sums[V] = {};
        const int64_t sample = p.n * x.stride_n + p.c * x.stride_c;
        for (int k0 = 0; k0 < w.kernel[0]; ++k0) {
            const int i0 = source_of(w, 0, p.at[0], k0);
            if (i0 < 0 || i0 >= x.size[0]) continue;
            for (int k1 = 0; k1 < w.kernel[1]; ++k1) {
                const int i1 = source_of(w, 1, p.at[1], k1);
                if (i1 < 0 || i1 >= x.size[1]) continue;
                for (int k2 = 0; k2 < w.kernel[2]; ++k2) {
                    const int i2 = source_of(w, 2, p.at[2], k2);
                    if (i2 < 0 || i2 >= x.size[2]) continue;
                    const auto in = load<V>(xs + sample + i0 * x.stride[0] + i1 * x.stride[1] + i2 * x.stride[2]);
#pragma unroll
                    for (int v = 0; v < V; ++v) sums[v] += widen(in.at[v]);
                }
            }
        }
        const int count = counted(w, x.size[0], padding, 0, p.at[0]) * counted(w, x.size[1], padding, 1, p.at[1]) *
                          counted(w, x.size[2], padding, 2, p.at[2]);
        const W scale = count == 0 ? W{0} : W{1} / static_cast<W>(count);
        Pack<T, V> out;
#pragma unroll
        for (int v = 0; v < V; ++v) out.at[v] = narrow<T>(sums[v] * scale);
        store<V>(ys + offset_of(y, p), out);
    }
}

template <class T, int V, bool kLast>
__global__ void __launch_bounds__(kThreads)
    average_pool_grad(Volume x, Volume y, Window3 w, bool padding, const T* dys, T* dxs, uint32_t packs) {
    using W = Wide<T>;
    for (uint32_t i = first_item(); i < packs; i = next_item(i, packs)) {
        const Position p = position_of<kLast, V>(x, i);
        W sums[V] = {};
        const int64_t sample = p.n * y.stride_n + p.c * y.stride_c;
        const Covering c0 = covering(w, 0, p.at[0], y.size[0]), c1 = covering(w, 1, p.at[1], y.size[1]),
                       c2 = covering(w, 2, p.at[2], y.size[2]);
        for (int o0 = c0.first; o0 <= c0.last; ++o0) {
            if (tap_of(w, 0, p.at[0], o0) < 0) continue;
            const int count0 = counted(w, x.size[0], padding, 0, o0);
            for (int o1 = c1.first; o1 <= c1.last; ++o1) {
                if (tap_of(w, 1, p.at[1], o1) < 0) continue;
                const int count1 = count0 * counted(w, x.size[1], padding, 1, o1);
                for (int o2 = c2.first; o2 <= c2.last; ++o2) {
                    if (tap_of(w, 2, p.at[2], o2) < 0) continue;
                    const int count = count1 * counted(w, x.size[2], padding, 2, o2);
                    if (count == 0) continue;
                    const W scale = W{1} / static_cast<W>(count);
                    const auto dy = load<V>(dys + sample + o0 * y.stride[0] + o1 * y.stride[1] + o2 * y.stride[2]);
#pragma unroll
                    for (int v = 0; v < V; ++v) sums[v] += widen(dy.at[v]) * scale;
                }
            }
        }
        Pack<T, V> out;
#pragma unroll
        for (int v = 0; v < V; ++v) out.at[v] = narrow<T>(sums[v]);
        store<V>(dxs + offset_of(x, p), out);
    }
}

// The same where lines lie together: V neighbours of a line share the windows above them. Without dilation; `x` counts packs in its lines.
template <class T, int V>
__global__ void __launch_bounds__(kThreads)
    average_pool_grad_lines(Volume x, Volume y, Window3 w, bool padding, const T* dys, T* dxs, uint32_t packs) {
    using W = Wide<T>;
    const auto share = [&](int d, int64_t size, int o) {
        const int count = counted(w, size, padding, d, o);
        return count == 0 ? W{0} : W{1} / static_cast<W>(count);
    };
    for (uint32_t i = first_item(); i < packs; i = next_item(i, packs)) {
        Position p = position_of<false, 1>(x, i);
        p.at[2] *= V;
        W sums[V] = {};
        const T* const sample = dys + p.n * y.stride_n + p.c * y.stride_c;
        const Covering c0 = covering(w, 0, p.at[0], y.size[0]), c1 = covering(w, 1, p.at[1], y.size[1]);
        const int first = covering(w, 2, p.at[2], y.size[2]).first, last = covering(w, 2, p.at[2] + V - 1, y.size[2]).last;
        for (int o0 = c0.first; o0 <= c0.last; ++o0) {
            const W share0 = share(0, x.size[0], o0);
            for (int o1 = c1.first; o1 <= c1.last; ++o1) {
                const W share1 = share0 * share(1, x.size[1], o1);
                const T* const line = sample + o0 * y.stride[0] + o1 * y.stride[1];
                for (int o2 = first; o2 <= last; ++o2) {
                    const W value = widen(line[o2 * y.stride[2]]) * (share1 * share(2, x.size[2], o2));
                    const int begin = source_of(w, 2, o2, 0) - p.at[2];
#pragma unroll
                    for (int v = 0; v < V; ++v)
                        if (v >= begin && v < begin + w.kernel[2]) sums[v] += value;
                }
            }
        }
        Pack<T, V> out;
#pragma unroll
        for (int v = 0; v < V; ++v) out.at[v] = narrow<T>(sums[v]);
        store<V>(dxs + offset_of(x, p), out);
    }
}

// --- Cases ----------------------------------------------------------------------------------------------------------------------

Volume volume_of(const KernelRequest& request, int tensor) {
    const Operand& o = operand(request, tensor);
    return cuda::volume_of(o.desc.shape, o.layout);
}

// Whether lines lie together, in packs of this width, and windows have no gaps in them.
bool has_lines(const Volume& x, const Window3& window, int width) {
    return x.stride[2] == 1 && x.size[2] > 0 && x.size[2] % width == 0 && *std::max_element(window.dilation, window.dilation + 3) == 1;
}
// The same volume, with its lines counted in packs.
Volume in_lines(Volume x, int width) {
    x.by_size[2] = divisor_of(x.size[2] / width);
    return x;
}

// Calls fn with the type of the places: bytes, or 32-bit integers for large windows.
template <class Fn>
void with_where(DType type, const Fn& fn) {
    if (type == DType::u8) return fn(uint8_t{});
    fn(int32_t{});
}

bool accepts_max(const Problem& p) { return steps_are<MaxPoolOp>(p); }
std::vector<Candidate> max_candidates(const Problem& p) {
    return in_each_layout(p, {input_of(p, 0, 0), output_of(p, 0, 0), output_of(p, 0, 1)});
}
std::unique_ptr<Kernel> prepare_max(const KernelRequest& request, Device& device) {
    const auto& step = request.problem.steps[0];
    const Volume x = volume_of(request, step.inputs[0]), y = volume_of(request, step.outputs[0]);
    const Window3 window = window3_of(std::get<MaxPoolOp>(step.op).window);
    std::unique_ptr<Kernel> kernel;
    with_floating(dtype_of(request, step.inputs[0]), [&](auto zero) {
        using T = decltype(zero);
        with_where(dtype_of(request, step.outputs[1]), [&](auto byte) {
            using Where = decltype(byte);
            with_packs<T>(x, y, [&](auto width, auto last) {
                const uint32_t packs = packs_of(y, width());
                kernel = make_kernel([&device, x, y, window, packs, xs = data_of<const T>(request, step.inputs[0]),
                                      ys = data_of<T>(request, step.outputs[0]),
                                      where = data_of<Where>(request, step.outputs[1])](const StepContext&) {
                    launch(device, max_pool<T, Where, decltype(width)::value, decltype(last)::value>, grid_for(packs), kThreads, x, y,
                           window, xs, ys, where, packs);
                });
            });
        });
    });
    return kernel;
}

// [MaxPoolGrad] and [gradient of a rectifier, MaxPoolGrad].
struct MaxGradient {
    int dy, where, saved = kNoTensor, dx;
    Rectifier rectifier;
};
std::optional<MaxGradient> max_gradient(const Problem& p) {
    const bool masked = steps_are<UnaryGradOp, MaxPoolGradOp>(p);
    if (!masked && !steps_are<MaxPoolGradOp>(p)) return std::nullopt;
    const size_t last = p.steps.size() - 1;
    MaxGradient g{.dy = input_of(p, 0, masked ? 1 : 0), .where = input_of(p, last, 1), .dx = output_of(p, last)};
    if (masked) {
        const auto& op = op_of<UnaryGradOp>(p);
        if (!is_rectifier(op.kind) || !continues(p, 1, 0) || !is_input(p, g.where)) return std::nullopt;
        g.saved = input_of(p, 0, 0);
        g.rectifier = rectifier_of(op.kind, op.alpha);
    }
    return g;
}
bool accepts_max_grad(const Problem& p) { return max_gradient(p).has_value(); }
std::vector<Candidate> max_grad_candidates(const Problem& p) {
    const auto g = *max_gradient(p);
    std::vector<int> tensors{g.dx, g.dy, g.where};
    if (g.saved != kNoTensor) tensors.push_back(g.saved);
    return in_each_layout(p, tensors);
}
std::unique_ptr<Kernel> prepare_max_grad(const KernelRequest& request, Device& device) {
    const auto g = *max_gradient(request.problem);
    const Volume x = volume_of(request, g.dx), y = volume_of(request, g.dy);
    const Window3 window = window3_of(op_of<MaxPoolGradOp>(request.problem, request.problem.steps.size() - 1).window);
    std::unique_ptr<Kernel> kernel;
    with_floating(dtype_of(request, g.dy), [&](auto zero) {
        using T = decltype(zero);
        const T* const saved = g.saved == kNoTensor ? nullptr : data_of<const T>(request, g.saved);
        with_where(dtype_of(request, g.where), [&](auto byte) {
            using Where = decltype(byte);
            const auto make = [&](auto run, const Volume& over, uint32_t packs) {
                kernel = make_kernel([&device, run, x = over, y, window, packs, saved, rectifier = g.rectifier,
                                      dy = data_of<const T>(request, g.dy), where = data_of<const Where>(request, g.where),
                                      dx = data_of<T>(request, g.dx)](const StepContext&) {
                    launch(device, run, grid_for(packs), kThreads, x, y, window, dy, where, saved, dx, rectifier, packs);
                });
            };
            constexpr int kLine = kFullPack<T>;
            if (has_lines(x, window, kLine)) {
                const auto run = saved ? max_pool_grad_lines<T, Where, kLine, true> : max_pool_grad_lines<T, Where, kLine, false>;
                return make(run, in_lines(x, kLine), packs_of(x, kLine));
            }
            with_packs<T>(x, y, [&](auto width, auto last) {
                constexpr int V = decltype(width)::value;
                constexpr bool kLast = decltype(last)::value;
                const auto run = saved ? max_pool_grad<T, Where, V, kLast, true> : max_pool_grad<T, Where, V, kLast, false>;
                make(run, x, packs_of(x, V));
            });
        });
    });
    return kernel;
}

bool accepts_max_index(const Problem& p) { return steps_are<MaxIndexOp>(p); }
std::vector<Candidate> max_index_candidates(const Problem& p) { return only_plain(p); }
std::unique_ptr<Kernel> prepare_max_index(const KernelRequest& request, Device& device) {
    const auto& step = request.problem.steps[0];
    const auto& op = std::get<MaxIndexOp>(step.op);
    const TensorDesc& where = operand(request, step.inputs[0]).desc;
    const Volume y = volume_of(request, step.inputs[0]);
    WholeInput whole{where.origin[0], where.origin[1], where.global[1], {1, 1, 1}, op.columns_first};
    for (int d = 0; d < op.input.size(); ++d) whole.size[3 - op.input.size() + d] = op.input[d];
    std::unique_ptr<Kernel> kernel;
    with_where(where.dtype, [&](auto byte) {
        using Where = decltype(byte);
        kernel = make_kernel([&device, y, whole, window = window3_of(op.window), count = packs_of(y, 1),
                              from = data_of<const Where>(request, step.inputs[0]),
                              places = data_of<int32_t>(request, step.outputs[0])](const StepContext&) {
            if (count > 0) launch(device, max_index<Where>, grid_for(count), kThreads, y, window, whole, from, places, count);
        });
    });
    return kernel;
}

bool accepts_average(const Problem& p) { return steps_are<AveragePoolOp>(p) || steps_are<AveragePoolGradOp>(p); }
std::vector<Candidate> average_candidates(const Problem& p) { return in_each_layout(p, {input_of(p, 0, 0), output_of(p, 0)}); }
std::unique_ptr<Kernel> prepare_average(const KernelRequest& request, Device& device) {
    const auto& step = request.problem.steps[0];
    const auto* const forward = std::get_if<AveragePoolOp>(&step.op);
    const auto* const backward = std::get_if<AveragePoolGradOp>(&step.op);
    const Volume from = volume_of(request, step.inputs[0]), to = volume_of(request, step.outputs[0]);
    const Volume &x = forward ? from : to, &y = forward ? to : from;
    const Window3 window = window3_of(forward ? forward->window : backward->window);
    const bool padding = forward ? forward->count_padding : backward->count_padding;
    std::unique_ptr<Kernel> kernel;
    with_floating(dtype_of(request, step.inputs[0]), [&](auto zero) {
        using T = decltype(zero);
        const auto make = [&](auto run, const Volume& over, uint32_t packs) {
            kernel = make_kernel([&device, run, x = over, y, window, padding, packs, in = data_of<const T>(request, step.inputs[0]),
                                  out = data_of<T>(request, step.outputs[0])](const StepContext&) {
                launch(device, run, grid_for(packs), kThreads, x, y, window, padding, in, out, packs);
            });
        };
        constexpr int kLine = kFullPack<T>;
        if (backward && has_lines(x, window, kLine)) return make(average_pool_grad_lines<T, kLine>, in_lines(x, kLine), packs_of(x, kLine));
        with_packs<T>(x, y, [&](auto width, auto last) {
            constexpr int V = decltype(width)::value;
            constexpr bool kLast = decltype(last)::value;
            make(forward ? average_pool<T, V, kLast> : average_pool_grad<T, V, kLast>, x, packs_of(to, V));
        });
    });
    return kernel;
}

}  // namespace

Family pool_family() {
    return {"pool",
            {{accepts_max, max_candidates, prepare_max},
             {accepts_max_grad, max_grad_candidates, prepare_max_grad},
             {accepts_max_index, max_index_candidates, prepare_max_index},
             {accepts_average, average_candidates, prepare_average}}};
}

}  // namespace convoy::cuda
