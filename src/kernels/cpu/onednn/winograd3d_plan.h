// Three-dimensional 3x3x3 convolutions of stride 1 by Winograd's method: how one falls into two-dimensional ones, and where what lies between
// them is kept. Internal to this folder; winograd3d.cpp runs it.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "kernels/cpu/onednn/conv_problem.h"
#include "kernels/cpu/onednn/depth_transform.h"

namespace convoy::cpu {

// All tiles of one point of the depth's transform make one two-dimensional problem whose samples are tiles; large activations are done in several
// chunks of tiles, so that what lies between stays in the cache and the workspace small.
struct Winograd3dPlan {
    ConvProblem conv;
    Shape x, w, y;
    const DepthTransform* transform;
    int64_t tiles;          // per sample
    int64_t chunk, chunks;  // tiles of one two-dimensional problem, and how many such problems there are at each point

    // The input gradient is a convolution of dy with the weights mirrored, and padding to match.
    bool mirrored() const { return conv.direction == Direction::GradInput; }
    int64_t padding() const { return mirrored() ? 2 - conv.window.pad_lo[0] : conv.window.pad_lo[0]; }
    bool sums_bias() const { return conv.direction == Direction::GradWeight && conv.bias >= 0; }
    // How many points' transformed weights are kept: those that serve several chunks.
    int64_t weights_kept() const { return conv.direction != Direction::GradWeight && chunks > 1 ? transform->points : 1; }

    int64_t floats_of(const Shape& activation) const { return chunk * activation[1] * activation[3] * activation[4]; }
    int64_t weight_floats() const { return w[0] * w[1] * 9; }
    DepthWeights weights(float* data) const;
    TileRange range(int64_t c) const { return {c * chunk, chunk, tiles, transform->outputs}; }
    // What one point's input transform reads.
    std::vector<Tap> input_taps(int point) const;
};

// Why the method does not apply; it takes 3x3x3, stride 1, no dilation, no groups, channels that are multiples of 16.
std::string winograd3d_refusal(const ConvView& view);
// By F(outputs, 3) along the depth, in the fewest equal chunks whose transformed activations fit into `cached_bytes`.
Winograd3dPlan winograd3d_plan(const ConvView& view, int outputs, int64_t cached_bytes);
// Seconds of one thread, roughly, with activations in this layout.
double seconds_of(const Winograd3dPlan& plan, const Layout& layout);

// The two-dimensional problem of one chunk. Throws dnnl::error when the library does not have it.
Described describe_slice(const Winograd3dPlan& plan, bool make);
// The layout of the three-dimensional weights whose slices lie as the library wants them; nothing when that is not [F/16][C/16][..][16][16].
std::optional<Layout> weight_layout(const Winograd3dPlan& plan, const Described& slice);

// The workspace: transformed activations of a chunk, transformed weights, a chunk's bias gradient, the library's scratchpad.
struct Winograd3dWorkspace {
    float *x, *y, *w, *bias;
    std::byte* scratchpad;
    int64_t bytes;

    Winograd3dWorkspace(const Winograd3dPlan& plan, const Described& slice, void* memory = nullptr);
};

// The two-dimensional convolution between the workspace's activations and transformed weights at `w`.
std::unique_ptr<Kernel> bind_slice(const Winograd3dPlan& plan, const Described& slice, const Winograd3dWorkspace& space, float* w,
                                   int threads);

}  // namespace convoy::cpu
