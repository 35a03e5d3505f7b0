// A window at work on an input, always with three spatial dims: those that an op does not have are put in front with length one. So the
// kernels of convolutions and poolings are written once.
#pragma once

#include <array>

#include "kernels/reference/view.h"
#include "model/window.h"

namespace convoy::ref {

struct Geometry {
    std::array<int64_t, 3> in{1, 1, 1}, out{1, 1, 1}, kernel{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1}, pad{0, 0, 0}, pad_hi{0, 0, 0};

    int64_t in_count() const { return in[0] * in[1] * in[2]; }
    int64_t out_count() const { return out[0] * out[1] * out[2]; }
    int64_t kernel_count() const { return kernel[0] * kernel[1] * kernel[2]; }
    // The input index under element k of the window of output o, along dim i; outside [0, in) it is padding.
    int64_t source(size_t i, int64_t o, int64_t k) const { return o * stride[i] - pad[i] + k * dilation[i]; }
    bool inside(size_t i, int64_t index) const { return index >= 0 && index < in[i]; }
    int64_t offset(int64_t i0, int64_t i1, int64_t i2) const { return (i0 * in[1] + i1) * in[2] + i2; }
    // Elements [begin, end) of the window of output o along dim i that are no padding.
    Range taps(size_t i, int64_t o) const {
        Range range{0, kernel[i]};
        while (range.begin < range.end && source(i, o, range.begin) < 0) ++range.begin;
        while (range.begin < range.end && source(i, o, range.end - 1) >= in[i]) --range.end;
        return range;
    }
    // Outputs [begin, end) along dim i for which element k of the window is no padding.
    Range covered(size_t i, int64_t k) const;
    // Whether every output sees exactly the input of its own place (a 1x1 convolution).
    bool is_pointwise() const;
};

// For activations x[N,C,..] and y[N,F,..].
Geometry geometry(const Window& window, const Shape& x, const Shape& y);

// Calls fn(position, offset): for every element of the window of output (o0, o1, o2) that is no padding, in row-major order, its place in
// the window and its offset in the input plane.
template <class Fn>
void for_each_tap(const Geometry& g, int64_t o0, int64_t o1, int64_t o2, const Fn& fn) {
    const Range r0 = g.taps(0, o0), r1 = g.taps(1, o1), r2 = g.taps(2, o2);
    for (int64_t k0 = r0.begin; k0 < r0.end; ++k0)
        for (int64_t k1 = r1.begin; k1 < r1.end; ++k1) {
            const int64_t position = (k0 * g.kernel[1] + k1) * g.kernel[2];
            const int64_t line = g.offset(g.source(0, o0, k0), g.source(1, o1, k1), g.source(2, o2, 0));
            for (int64_t k2 = r2.begin; k2 < r2.end; ++k2) fn(position + k2, line + k2 * g.dilation[2]);
        }
}

// Calls fn(o, o0, o1, o2) for every output, o being its offset in the output plane.
template <class Fn>
void for_each_output(const Geometry& g, const Fn& fn) {
    int64_t o = 0;
    for (int64_t o0 = 0; o0 < g.out[0]; ++o0)
        for (int64_t o1 = 0; o1 < g.out[1]; ++o1)
            for (int64_t o2 = 0; o2 < g.out[2]; ++o2) fn(o++, o0, o1, o2);
}

}  // namespace convoy::ref
