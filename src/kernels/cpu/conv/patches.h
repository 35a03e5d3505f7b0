// Rearranging activations for matrix products: patches under windows, and planes shifted by one tap. Plain and channels-last activations are one
// case: a point has `lanes` neighbouring floats (1 or all channels), of which there are `planes` (all channels, or 1).
#pragma once

#include "kernels/cpu/conv/view.h"
#include "kernels/cpu/implementation.h"

namespace convoy::cpu {

// The channels of one group of one sample as planes of lines. Line p of plane q stands at data + q*plane_step + p*line_step.
struct Planes {
    float* data = nullptr;
    int64_t planes = 1, plane_step = 0, line_step = 1, lanes = 1;
};

// Sample n and group g of an activation with `channels` channels in a group, `points` per channel; plain or channels-last.
Planes planes_of(float* data, const ConvView& view, bool last, int64_t channels, int64_t points, int64_t n, int64_t g);

// to: like x, but under every output the element that tap sees, or zero.
void gather_tap(const ConvView& view, int64_t tap, const Planes& x, const Planes& to, const CpuContext& context);
// to (an input) += from (an output) where the tap of an output lies.
void add_to_inputs(const ConvView& view, int64_t tap, const Planes& from, const Planes& to, const CpuContext& context);
// to (an output) += what the tap sees of from (an input).
void add_to_outputs(const ConvView& view, int64_t tap, const Planes& from, const Planes& to, const CpuContext& context);

// Zeroes `count` floats on threads.
void clear(float* data, int64_t count, const CpuContext& context);

}  // namespace convoy::cpu
