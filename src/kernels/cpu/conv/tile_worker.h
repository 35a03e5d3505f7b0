// One share of a convolution by tiles: its tiles' way through the transforms and products, with memory of its own.
#pragma once

#include "kernels/cpu/conv/tiles.h"
#include "kernels/cpu/vector/kernels.h"

namespace convoy::cpu {

// An activation as vectors of a block's channels.
struct Blocked {
    float* data = nullptr;
    int64_t sample_step = 0, block_step = 0, point_step = 0;
    Three size{1, 1, 1};
};

struct TileOperands {
    Blocked x, y;
    float* w = nullptr;  // blocks of [source's channels][result's]
};

struct TileMemory {
    float* weights = nullptr;  // transformed: all of a group's, or as many as are held at a time
    float *c_tiles = nullptr, *f_tiles = nullptr;
    float* scratch = nullptr;
};

class TileWorker {
  public:
    // The plan must outlive it. It works with so many threads on each chunk.
    TileWorker(const TilePlan& plan, const TileOperands& operands, const TileMemory& memory, int threads)
        : p_(plan), o_(operands), m_(memory), threads_(threads) {}

    // Transforms all of a group's weights, or (back) their gradient's sums back to the gradient.
    void all_weights(int64_t group, bool back) const;
    // Computes the results of some tiles, or their share of the weights' gradient. Weights that are not streamed have been transformed; a gradient's are to be transformed back.
    void run(int64_t group, const Range& tiles) const;

  private:
    // Transformed weights: at every point, for every part, rows of two blocks of the result's channels.
    struct Weights {
        float* data;
        int64_t point_step, part_step;
    };
    // Some of the weights: rows, and blocks of the result's channels.
    struct Block {
        int64_t row, rows, result, results;
    };
    // At every point a matrix: a row for each tile.
    struct Matrices {
        float* data;
        int64_t blocks, floats, step;  // of a row; from point to point
    };
    struct Place {
        int64_t sample;
        Three first;  // of the results
    };

    int64_t b() const { return p_.context.block; }
    int parts(int64_t elements) const;
    vec::TileBox points(float* data, int64_t step) const;
    vec::TileArgs args(int part) const;
    void transform(vec::TileStep step, vec::TileArgs& a) const;
    Place place(int64_t tile) const;
    template <class Fn>
    void each(const Range& tiles, int64_t blocks, const Fn& fn) const;
    // A chunk's matrices of x's channels, or of y's.
    Matrices c() const { return {m_.c_tiles, p_.c_blocks(), p_.c_floats(), p_.c_step()}; }
    Matrices f() const { return {m_.f_tiles, p_.f_blocks(), p_.f_floats(), p_.f_step()}; }
    // The points of a tile, by its number, from some block on.
    vec::TileBox points(const Matrices& m, int64_t number, int64_t block) const {
        return points(m.data + number * m.floats + block * b(), m.step);
    }

    void sources(int64_t g, const Range& tiles, const Blocked& from, const Matrices& to) const;
    void results(int64_t g, const Range& tiles, const Blocked& to, const Matrices& from) const;
    void gradients(int64_t g, const Range& tiles) const;
    void weight_rows(int64_t g, int part, const Block& block, const Weights& spectrum, bool back) const;
    void few_weight_rows(int64_t g, int part, int64_t result, const Range& rows, const Weights& spectrum, bool back) const;
    void products(int64_t tiles, bool add) const;
    void streamed_products(int64_t g, int64_t tiles) const;
    void multiply_point(int64_t point, int64_t tiles, const Block& block, const Weights& w, bool more) const;
    void sum_point(int64_t point, int64_t tiles, const Block& block, const Weights& w, bool more) const;

    const TilePlan& p_;
    TileOperands o_;
    TileMemory m_;
    int threads_;
};

}  // namespace convoy::cpu
