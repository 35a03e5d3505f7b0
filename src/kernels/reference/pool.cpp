#include "kernels/reference/pool.h"

#include <cmath>
#include <limits>

#include "base/error.h"
#include "kernels/reference/geometry.h"

namespace convoy::ref {

namespace {

int64_t planes_of(const Shape& shape) { return shape[0] * shape[1]; }

// Positions inside a window are stored as bytes where they fit (which infer() decides), else as 32-bit integers.
template <class Fn>
void with_where(const Operand& where, const Fn& fn) {
    if (where.desc.dtype == DType::u8) return fn(view<uint8_t>(where));
    fn(view<int32_t>(where));
}

template <class T, class Where>
void max_pool(const Geometry& g, const View<const T>& x, const View<T>& y, const View<Where>& where, int threads) {
    parallel_for(threads, planes_of(y.shape), [&](int64_t plane) {
        const T* const xs = x.data + plane * g.in_count();
        for_each_output(g, [&](int64_t o, int64_t o0, int64_t o1, int64_t o2) {
            T best = -std::numeric_limits<T>::infinity();
            int64_t at = -1;
            // A NaN wins, so that it is seen at the end; the first of equals wins.
            for_each_tap(g, o0, o1, o2, [&](int64_t position, int64_t i) {
                if (at >= 0 && !(xs[i] > best) && !(std::isnan(xs[i]) && !std::isnan(best))) return;
                best = xs[i];
                at = position;
            });
            y[plane * g.out_count() + o] = best;
            where[plane * g.out_count() + o] = static_cast<Where>(std::max<int64_t>(at, 0));
        });
    });
}

template <class T, class Where>
void max_pool_grad(const Geometry& g, const View<const T>& dy, const View<Where>& where, const View<T>& dx, int threads) {
    parallel_for(threads, planes_of(dy.shape), [&](int64_t plane) {
        T* const dxs = dx.data + plane * g.in_count();
        std::fill_n(dxs, g.in_count(), T{0});
        for_each_output(g, [&](int64_t o, int64_t o0, int64_t o1, int64_t o2) {
            const int64_t position = where[plane * g.out_count() + o];
            const int64_t i0 = g.source(0, o0, position / (g.kernel[1] * g.kernel[2]));
            const int64_t i1 = g.source(1, o1, position / g.kernel[2] % g.kernel[1]);
            const int64_t i2 = g.source(2, o2, position % g.kernel[2]);
            // A window that was nothing but padding has its maximum nowhere.
            if (g.inside(0, i0) && g.inside(1, i1) && g.inside(2, i2)) dxs[g.offset(i0, i1, i2)] += dy[plane * g.out_count() + o];
        });
    });
}

// What counts in the divisor of output o along dim i: elements of the input, and of the padding if it counts, never what lies past both.
int64_t counted(const Geometry& g, bool count_padding, size_t i, int64_t o) {
    const int64_t begin = count_padding ? std::min<int64_t>(-g.pad[i], 0) : 0;
    const int64_t end = g.in[i] + (count_padding ? std::max<int64_t>(g.pad_hi[i], 0) : 0);
    int64_t count = 0;
    for (int64_t k = 0; k < g.kernel[i]; ++k) count += g.source(i, o, k) >= begin && g.source(i, o, k) < end;
    return count;
}

// Calls fn(o, scale, o0, o1, o2) for every output with one over its divisor; 0 for a window in which nothing counts.
template <class Fn>
void for_each_average(const Geometry& g, bool count_padding, const Fn& fn) {
    for (int64_t o = 0, o0 = 0; o0 < g.out[0]; ++o0) {
        const int64_t count0 = counted(g, count_padding, 0, o0);
        for (int64_t o1 = 0; o1 < g.out[1]; ++o1) {
            const int64_t count1 = counted(g, count_padding, 1, o1);
            for (int64_t o2 = 0; o2 < g.out[2]; ++o2, ++o) {
                const int64_t count = count0 * count1 * counted(g, count_padding, 2, o2);
                fn(o, count == 0 ? 0.0 : 1.0 / static_cast<double>(count), o0, o1, o2);
            }
        }
    }
}

}  // namespace

template <class T>
void reference(const MaxPoolOp& op, const KernelArgs& args) {
    const auto x = const_view<T>(args.inputs[0]);
    const auto y = view<T>(args.outputs[0]);
    const auto g = geometry(op.window, x.shape, y.shape);
    with_where(args.outputs[1], [&](const auto& where) { max_pool(g, x, y, where, args.threads); });
}

template <class T>
void reference(const MaxPoolGradOp& op, const KernelArgs& args) {
    const auto dy = const_view<T>(args.inputs[0]);
    const auto dx = view<T>(args.outputs[0]);
    const auto g = geometry(op.window, dx.shape, dy.shape);
    with_where(args.inputs[1], [&](const auto& where) { max_pool_grad(g, dy, where, dx, args.threads); });
}

// The same for every T: no operand is a real number.
template <class T>
void reference(const MaxIndexOp& op, const KernelArgs& args) {
    const auto places = view<int32_t>(args.outputs[0]);
    with_where(args.inputs[0], [&](const auto& where) {
        const Geometry g = geometry(op.window, join(where.shape.slice(0, 2), op.input), where.shape);
        parallel_for(args.threads, planes_of(where.shape), [&](int64_t plane) {
            const int64_t sample = plane / where.shape[1] + where.origin[0], channel = plane % where.shape[1] + where.origin[1];
            const int64_t before = (sample * where.global[1] + channel) * g.in_count();
            for_each_output(g, [&](int64_t o, int64_t o0, int64_t o1, int64_t o2) {
                const int64_t position = where[plane * g.out_count() + o];
                const int64_t i0 = g.source(0, o0, position / (g.kernel[1] * g.kernel[2]));
                const int64_t i1 = g.source(1, o1, position / g.kernel[2] % g.kernel[1]);
                const int64_t i2 = g.source(2, o2, position % g.kernel[2]);
                const int64_t place = op.columns_first ? (i2 * g.in[1] + i1) * g.in[0] + i0 : g.offset(i0, i1, i2);
                places[plane * g.out_count() + o] = static_cast<int32_t>(before + place);
            });
        });
    });
}

template <class T>
void reference(const AveragePoolOp& op, const KernelArgs& args) {
    const auto x = const_view<T>(args.inputs[0]);
    const auto y = view<T>(args.outputs[0]);
    const auto g = geometry(op.window, x.shape, y.shape);
    parallel_for(args.threads, planes_of(y.shape), [&](int64_t plane) {
        const T* const xs = x.data + plane * g.in_count();
        for_each_average(g, op.count_padding, [&](int64_t o, double scale, int64_t o0, int64_t o1, int64_t o2) {
            double sum = 0;
            for_each_tap(g, o0, o1, o2, [&](int64_t, int64_t i) { sum += xs[i]; });
            y[plane * g.out_count() + o] = static_cast<T>(sum * scale);
        });
    });
}

template <class T>
void reference(const AveragePoolGradOp& op, const KernelArgs& args) {
    const auto dy = const_view<T>(args.inputs[0]);
    const auto dx = view<T>(args.outputs[0]);
    const auto g = geometry(op.window, dx.shape, dy.shape);
    parallel_for(args.threads, planes_of(dy.shape), [&](int64_t plane) {
        T* const dxs = dx.data + plane * g.in_count();
        std::fill_n(dxs, g.in_count(), T{0});
        for_each_average(g, op.count_padding, [&](int64_t o, double scale, int64_t o0, int64_t o1, int64_t o2) {
            const T share = static_cast<T>(dy[plane * g.out_count() + o] * scale);
            for_each_tap(g, o0, o1, o2, [&](int64_t, int64_t i) { dxs[i] += share; });
        });
    });
}

template void reference<double>(const MaxPoolOp&, const KernelArgs&);
template void reference<float>(const MaxPoolOp&, const KernelArgs&);
template void reference<double>(const MaxPoolGradOp&, const KernelArgs&);
template void reference<float>(const MaxPoolGradOp&, const KernelArgs&);
template void reference<double>(const MaxIndexOp&, const KernelArgs&);
template void reference<float>(const MaxIndexOp&, const KernelArgs&);
template void reference<double>(const AveragePoolOp&, const KernelArgs&);
template void reference<float>(const AveragePoolOp&, const KernelArgs&);
template void reference<double>(const AveragePoolGradOp&, const KernelArgs&);
template void reference<float>(const AveragePoolGradOp&, const KernelArgs&);

}  // namespace convoy::ref
