// One convolution as its algorithms see it: sizes and window with always three spatial dims (those that a problem lacks come first and are 1), so that
// one, two and three dims are one case.
#pragma once

#include <array>
#include <optional>

#include "kernels/patterns.h"

namespace convoy::cpu {

using Three = std::array<int64_t, 3>;

inline int64_t volume(const Three& t) { return t[0] * t[1] * t[2]; }

struct Range {
    int64_t begin = 0, end = 0;
    int64_t size() const { return end > begin ? end - begin : 0; }
};

struct ConvView {
    ConvProblem conv;
    Shape x, w, y;
    int rank = 0;  // spatial dims of the problem itself
    int64_t n = 0, c = 0, f = 0, groups = 1;
    Three in{1, 1, 1}, out{1, 1, 1}, kernel{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1}, pad{0, 0, 0};  // pad: before the first element

    Direction direction() const { return conv.direction; }
    int64_t channels() const { return c / groups; }  // of a group
    int64_t filters() const { return f / groups; }
    int64_t taps() const { return volume(kernel); }
    int64_t in_points() const { return volume(in); }
    int64_t out_points() const { return volume(out); }
    bool all_ones(const Three& t) const { return t == Three{1, 1, 1}; }
    int64_t extent(size_t i) const { return (kernel[i] - 1) * dilation[i] + 1; }
    // Which element of the input lies under tap k of output o, along dim i; may lie outside.
    int64_t at(size_t i, int64_t o, int64_t k) const { return o * stride[i] + k * dilation[i] - pad[i]; }
    // The outputs whose tap k lies inside the input, along dim i.
    Range outputs(size_t i, int64_t k) const;
    // The tap as three indices.
    Three tap(int64_t number) const;
    // Multiplications and additions of the definition, padding included.
    double operations() const;
    // The part of a window's elements, over all outputs, that lies in the input; the rest falls on padding.
    double used_part() const;
};

// Nothing when the problem is no convolution of float32, or ends with an activation that no algorithm fuses.
std::optional<ConvView> conv_view(const Problem& problem);

// Calls fn(first output, first input, count) for the runs of outputs, along rows, whose tap lies inside the input: outputs are neighbours, inputs
// stride[2] apart. Both are numbered in their volumes.
template <class Fn>
void for_tap_rows(const ConvView& v, int64_t tap, const Fn& fn) {
    const Three k = v.tap(tap);
    const Range d = v.outputs(0, k[0]), h = v.outputs(1, k[1]), w = v.outputs(2, k[2]);
    if (w.size() == 0) return;
    for (int64_t od = d.begin; od < d.end; ++od)
        for (int64_t oh = h.begin; oh < h.end; ++oh)
            fn((od * v.out[1] + oh) * v.out[2] + w.begin,
               (v.at(0, od, k[0]) * v.in[1] + v.at(1, oh, k[1])) * v.in[2] + v.at(2, w.begin, k[2]), w.size());
}

}  // namespace convoy::cpu
