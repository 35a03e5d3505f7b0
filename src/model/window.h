// The sliding window of convolutions and poolings, one entry per spatial dim.
#pragma once

#include "tensor/dims.h"

namespace convoy {

struct Window {
    Dims kernel, stride, dilation, pad_lo, pad_hi;

    // A window with stride 1, no dilation and no padding.
    static Window of(Dims kernel);
    int rank() const { return kernel.size(); }
    // Input elements that one window spans along spatial dim i.
    int64_t extent(int i) const { return (kernel[i] - 1) * dilation[i] + 1; }
    // Windows that fit along spatial dim i of an input of this length (0 when none does).
    int64_t output(int i, int64_t length) const;
    Dims output(const Dims& input) const;

    bool operator==(const Window&) const = default;
};

}  // namespace convoy
