// Convolution through a transform of tiles: what Winograd's method and the Fourier transform share. Tiles of the source and the weights are transformed;
// at every point of the transform there is one matrix product over channels, for many tiles at once; the products are transformed back. The weight
// gradient transforms tiles of x and of dy, sums their products over all tiles, and transforms the sums back. Of stride 1 only.
//
// Tiles go in chunks, so that what lies between the transforms stays in the cache, and every thread does tiles of its own from the first transform to the last, so that it stays in
// that thread's. Only where there are few tiles do all threads work on one chunk. Activations are blocked or channels-last, channels padded to blocks.
#pragma once

#include <string>

#include "kernels/cpu/conv/algorithm.h"

namespace convoy::cpu {

// Tiles of `tile` elements along the active dims, whose results are `step` elements; the other dims have windows of one element and tiles of one.
struct TilePlan {
    ConvView view;
    CpuContext context;
    bool fourier = false;
    int64_t outputs = 0;  // Winograd's m
    int64_t size = 0;     // Fourier's tile
    bool active[3] = {false, false, false};
    Three tile{1, 1, 1}, step{1, 1, 1}, tiles{1, 1, 1};
    int64_t points = 1, parts = 1;  // products, and numbers in each: 2 for complex ones
    int workers = 1;                // of one thread each, with tiles of their own; or one, of all threads
    int64_t chunk = 1;              // tiles that a worker does together
    int64_t weight_rows = 0;  // how many of the source's channels have their weights transformed at a time; 0: all, before the products

    // The input gradient is a convolution of dy with the weights mirrored, and padding to match.
    bool mirrored() const { return view.direction() == Direction::GradInput; }
    bool sums() const { return view.direction() == Direction::GradWeight; }
    const Three& source() const { return mirrored() ? view.out : view.in; }
    const Three& result() const { return mirrored() ? view.in : view.out; }
    int64_t padding(size_t i) const { return mirrored() ? view.extent(i) - 1 - view.pad[i] : view.pad[i]; }
    int64_t blocked(int64_t channels) const { return (channels + context.block - 1) / context.block; }
    int64_t c_blocks() const { return blocked(view.channels()); }  // of a group
    int64_t f_blocks() const { return blocked(view.filters()); }
    int64_t c_floats() const { return parts * c_blocks() * context.block; }  // of one point of one tile
    int64_t f_floats() const { return parts * f_blocks() * context.block; }
    int64_t all_tiles() const { return view.n * volume(tiles); }
    int64_t source_rows() const { return (mirrored() ? f_blocks() : c_blocks()) * context.block; }
    int64_t result_blocks() const { return mirrored() ? c_blocks() : f_blocks(); }

    int threads_each() const { return workers > 1 ? 1 : std::max(1, context.threads); }

    // Whether transformed weights are used as they are made, panel by panel, and never lie in memory as a whole.
    bool streamed() const { return weight_rows > 0; }
    // Whether every worker transforms weights, or sums their gradient, for itself.
    bool own_weights() const { return streamed() || sums(); }

    // From one point's matrix to the next one's: a transform writes to all points at once, and steps of a power of two would put them all into the same few lines of a
    // cache. An odd number of lines spreads them.
    static int64_t spread(int64_t floats) { return ((floats + 15) / 16 | 1) * 16; }
    int64_t c_step() const { return spread(chunk * c_floats()); }
    int64_t f_step() const { return spread(chunk * f_floats()); }
    int64_t weight_step() const { return spread(weight_floats()); }
    int64_t streamed_step() const { return spread(parts * weight_rows * 2 * context.block); }

    int64_t weight_floats() const;       // of one point, all of a group's
    int64_t held_weight_floats() const;  // of all points, as many as are held at a time, by one worker or for all
    int64_t gradient_floats() const;     // of the weights' gradient
    int64_t scratch_floats() const;      // of one thread
    int64_t workspace_bytes() const;
    double operations() const;
};

// Why no such method takes a problem; empty when one may.
std::string tiles_refusal(const ConvView& view, const CpuContext& context);
// Completes a plan of which method, sizes and steps are known.
void finish_plan(TilePlan& plan);
ConvOffers tile_offers(const TilePlan& plan, double slowness);
std::unique_ptr<Kernel> prepare_tiles(const TilePlan& plan, const ConvCall& call);

}  // namespace convoy::cpu
