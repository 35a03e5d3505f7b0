// The geometry of a pooling as lists: which inputs each output sees along each of three spatial dims, and the other way round. Made once when a
// kernel is prepared, so that the kernels know nothing of strides, padding, dilation or adaptive windows.
#pragma once

#include <array>
#include <vector>

#include "kernels/cpu/vector/kernels.h"
#include "model/window.h"
#include "program/problem.h"

namespace convoy::cpu {

// One spatial dim. Outputs see inputs [.., ..) with the taps of a window.
struct PoolDim {
    int64_t in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, pad = 0, pad_hi = 0;
    bool adaptive = false;

    // Calls fn(input, tap) for the inputs that an output sees, in rising order.
    template <class Fn>
    void for_each_input(int64_t o, const Fn& fn) const {
        if (adaptive) {
            const int64_t begin = o * in / out, end = ((o + 1) * in + out - 1) / out;
            for (int64_t i = begin; i < end; ++i) fn(i, i - begin);
            return;
        }
        for (int64_t k = 0; k < kernel; ++k) {
            const int64_t i = o * stride - pad + k * dilation;
            if (i >= 0 && i < in) fn(i, k);
        }
    }
    // What counts in the divisor of an output's average: inputs, and the padding if it counts, but never what lies past both.
    int64_t counted(int64_t o, bool count_padding) const;
    // Whether every output sees an input.
    bool all_see() const;
};
using PoolDims = std::array<PoolDim, 3>;  // dims that the op does not have come first

PoolDims window_dims(const Window& window, const Shape& x, const Shape& y);
PoolDims adaptive_dims(const Shape& x, const Shape& y);

class PoolLinks {
  public:
    // From outputs to inputs, or with `reverse` from inputs to outputs in all dims but the last.
    PoolLinks(const PoolDims& dims, bool reverse);
    // Also the averages' shares.
    PoolLinks(const PoolDims& dims, bool reverse, bool count_padding);
    // Sets sizes, links, strides of taps and shares; the links stay the property of this object.
    void bind(vec::PoolArgs& args) const;

  private:
    struct Lists {
        std::vector<int32_t> first, index, tap;
        std::vector<float> share;
    };
    PoolDims dims_;
    bool reverse_;
    std::array<Lists, 3> lists_;
};

}  // namespace convoy::cpu
