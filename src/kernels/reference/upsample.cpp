#include "kernels/reference/upsample.h"

#include <array>

#include "base/error.h"
#include "model/upsampling.h"

namespace convoy::ref {

namespace {

// What one output reads along one dim: inputs [begin, end), the first with one weight, the others with another. A rule gives it from the
// output's index and the whole lengths of input and output; results along several dims multiply.
struct Taps {
    int64_t begin, end;
    double first, others;
    double weight(int64_t i) const { return i == begin ? first : others; }
};

Taps nearest(int64_t o, int64_t in, int64_t out) {
    const int64_t source = o * in / out;
    return {source, source + 1, 1, 0};
}

Taps linear(int64_t o, int64_t in, int64_t out, bool align_corners) {
    const double source = linear_source(o, in, out, align_corners);
    const int64_t begin = std::min(static_cast<int64_t>(source), in - 1);
    if (begin == in - 1) return {begin, in, 1, 0};
    const double rest = source - static_cast<double>(begin);
    return {begin, begin + 2, 1 - rest, rest};
}

Taps average(int64_t o, int64_t in, int64_t out) {
    const int64_t begin = o * in / out, end = ((o + 1) * in + out - 1) / out;
    const double share = 1.0 / static_cast<double>(end - begin);
    return {begin, end, share, share};
}

// One spatial dim of a pair of operands.
struct Axis {
    int64_t in = 1, out = 1;                // here
    int64_t in_origin = 0, out_origin = 0;  // where that lies
    int64_t in_whole = 1, out_whole = 1;    // in these lengths
};

// Three spatial dims; those that the operands do not have come first, with length one.
std::array<Axis, 3> axes_of(const TensorDesc& x, const TensorDesc& y) {
    const int rank = x.shape.size() - 2;
    CONVOY_CHECK(rank >= 1 && rank <= 3 && y.shape.size() == rank + 2, "resampling {} to {}", to_string(x.shape), to_string(y.shape));
    for (const auto* t : {&x, &y})
        CONVOY_CHECK(t->global.size() == rank + 2 && t->origin.size() == rank + 2, "part {} of {} at {}", to_string(t->shape),
                     to_string(t->global), to_string(t->origin));
    std::array<Axis, 3> axes;
    for (int i = 0; i < rank; ++i) {
        const int d = 2 + i;
        axes[static_cast<size_t>(3 - rank + i)] = {x.shape[d], y.shape[d], x.origin[d], y.origin[d], x.global[d], y.global[d]};
    }
    return axes;
}

// All that one output reads of this part of the input.
struct Reads {
    const std::array<Axis, 3>& axes;
    std::array<Taps, 3> taps;

    // Calls fn(offset in the input's plane, weight).
    template <class Fn>
    void for_each(const Fn& fn) const {
        const Range r0 = here(0), r1 = here(1), r2 = here(2);
        for (int64_t i0 = r0.begin; i0 < r0.end; ++i0)
            for (int64_t i1 = r1.begin; i1 < r1.end; ++i1)
                for (int64_t i2 = r2.begin; i2 < r2.end; ++i2)
                    fn((i0 * axes[1].in + i1) * axes[2].in + i2, weight(0, i0) * weight(1, i1) * weight(2, i2));
    }

  private:
    Range here(size_t d) const {
        return {std::max<int64_t>(taps[d].begin - axes[d].in_origin, 0), std::min(taps[d].end - axes[d].in_origin, axes[d].in)};
    }
    double weight(size_t d, int64_t i) const { return taps[d].weight(i + axes[d].in_origin); }
};

// Calls fn(offset in the output's plane, reads) for every output of this part.
template <class Rule, class Fn>
void for_each_output(const std::array<Axis, 3>& axes, const Rule& rule, const Fn& fn) {
    const auto taps = [&](size_t d, int64_t o) { return rule(o + axes[d].out_origin, axes[d].in_whole, axes[d].out_whole); };
    int64_t o = 0;
    for (int64_t o0 = 0; o0 < axes[0].out; ++o0)
        for (int64_t o1 = 0; o1 < axes[1].out; ++o1)
            for (int64_t o2 = 0; o2 < axes[2].out; ++o2) fn(o++, Reads{axes, {taps(0, o0), taps(1, o1), taps(2, o2)}});
}

template <class T, class Rule>
void resample(const KernelArgs& args, const Rule& rule) {
    const auto x = const_view<T>(args.inputs[0]);
    const auto y = view<T>(args.outputs[0]);
    const auto axes = axes_of(args.inputs[0].desc, args.outputs[0].desc);
    const int64_t in_count = x.inner(2), out_count = y.inner(2);
    parallel_for(args.threads, y.shape[0] * y.shape[1], [&](int64_t plane) {
        const T* const xs = x.data + plane * in_count;
        T* const ys = y.data + plane * out_count;
        for_each_output(axes, rule, [&](int64_t o, const Reads& reads) {
            double sum = 0;
            reads.for_each([&](int64_t i, double weight) { sum += xs[i] * weight; });
            ys[o] = static_cast<T>(sum);
        });
    });
}

template <class T, class Rule>
void resample_grad(const KernelArgs& args, const Rule& rule) {
    const auto dy = const_view<T>(args.inputs[0]);
    const auto dx = view<T>(args.outputs[0]);
    const auto axes = axes_of(args.outputs[0].desc, args.inputs[0].desc);
    const int64_t in_count = dx.inner(2), out_count = dy.inner(2);
    parallel_for(args.threads, dx.shape[0] * dx.shape[1], [&](int64_t plane) {
        const T* const dys = dy.data + plane * out_count;
        T* const dxs = dx.data + plane * in_count;
        std::fill_n(dxs, in_count, T{0});
        for_each_output(axes, rule, [&](int64_t o, const Reads& reads) {
            reads.for_each([&](int64_t i, double weight) { dxs[i] += static_cast<T>(dys[o] * weight); });
        });
    });
}

// Calls fn with the rule of an up-sampling.
template <class Fn>
void with_rule(Resample mode, bool align_corners, const Fn& fn) {
    if (mode == Resample::Nearest) return fn(nearest);
    fn([align_corners](int64_t o, int64_t in, int64_t out) { return linear(o, in, out, align_corners); });
}

}  // namespace

template <class T>
void reference(const AdaptivePoolOp&, const KernelArgs& args) {
    resample<T>(args, average);
}

template <class T>
void reference(const AdaptivePoolGradOp&, const KernelArgs& args) {
    resample_grad<T>(args, average);
}

template <class T>
void reference(const UpsampleOp& op, const KernelArgs& args) {
    with_rule(op.mode, op.align_corners, [&](const auto& rule) { resample<T>(args, rule); });
}

template <class T>
void reference(const UpsampleGradOp& op, const KernelArgs& args) {
    with_rule(op.mode, op.align_corners, [&](const auto& rule) { resample_grad<T>(args, rule); });
}

template void reference<double>(const AdaptivePoolOp&, const KernelArgs&);
template void reference<float>(const AdaptivePoolOp&, const KernelArgs&);
template void reference<double>(const AdaptivePoolGradOp&, const KernelArgs&);
template void reference<float>(const AdaptivePoolGradOp&, const KernelArgs&);
template void reference<double>(const UpsampleOp&, const KernelArgs&);
template void reference<float>(const UpsampleOp&, const KernelArgs&);
template void reference<double>(const UpsampleGradOp&, const KernelArgs&);
template void reference<float>(const UpsampleGradOp&, const KernelArgs&);

}  // namespace convoy::ref
