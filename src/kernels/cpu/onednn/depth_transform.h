// The part of a three-dimensional Winograd convolution that goes along the depth: F(m, 3), which turns m output slices into m + 2 products of
// two-dimensional slices. A tile is m output slices of one sample; tiles are numbered sample by sample. Internal to this folder.
#pragma once

#include <vector>

#include "kernels/cpu/own.h"

namespace convoy::cpu {

// Matrices of F(m, 3): y = output * ((weight * w) . (input * x)), with m + 2 points between.
struct DepthTransform {
    int outputs, points;
    float input[6][6], weight[6][3], output[4][6];
};
// For m = 2 or 4.
const DepthTransform& depth_transform(int outputs);

// An activation [N, C, D, H, W], C a multiple of 16, blocked or channels-last, as slices of lines of sixteen channels.
struct Slices {
    float* data = nullptr;
    int64_t blocks = 0, depth = 0, lines = 0;  // lines of a slice and block: H*W
    int64_t sample_step = 0, block_step = 0, depth_step = 0, line_step = 0;
};
Slices slices_of(const Operand& operand);

// Tiles [first, first + number); each sample has `per_sample` of them, m slices apart.
struct TileRange {
    int64_t first, number, per_sample, outputs;
};

// Slice `slice`, counted from the tile's first output slice, times `factor`.
struct Tap {
    int64_t slice;
    float factor;
};
// to [tiles][blocks][lines][16] = the sum of the taps; slices outside the tensor are zero.
void gather_tiles(const Slices& from, const TileRange& tiles, const std::vector<Tap>& taps, float* to, const CpuContext& context);

// What the output slice `tap.slice` of a tile receives: the first time it is set, afterwards added to; the last time it is finished.
struct TapResult {
    Tap tap;
    bool add, last;
};
// Bias ([C], may be null) and the slope of what is <= 0, applied to a slice that is complete.
struct Ending {
    const float* bias = nullptr;
    float slope = 1;
};
void scatter_tiles(const float* from, const Slices& to, const TileRange& tiles, const std::vector<TapResult>& results, const Ending& ending,
                   const CpuContext& context);

// Weights of which a block lies as [3 of the depth][lines][16]; transformed ones as [lines][16].
struct DepthWeights {
    float* data = nullptr;
    int64_t blocks = 0, lines = 0;
};
// to = the sum over kd of factor[kd] * slice kd.
void gather_weights(const DepthWeights& from, const float factor[3], float* to, const CpuContext& context);
// Slice kd of `to` receives factor[kd] * from; those with add[kd] keep what they had.
void scatter_weights(const float* from, const DepthWeights& to, const float factor[3], const bool add[3], const CpuContext& context);

}  // namespace convoy::cpu
