#include "kernels/cpu/conv/tile_worker.h"

#include "kernels/cpu/own.h"

namespace convoy::cpu {

using vec::TileArgs;
using vec::TileBox;
using vec::TileStep;

namespace {

constexpr int64_t kRows = 4;  // of weights that are transformed together: divides a block, and as much as can be fetched ahead at a time

// Tile coordinates of an activation: element 0 of the tile is element `first` of it.
TileBox box_of(const Blocked& a, int64_t sample, int64_t block, const Three& first, const Three& count) {
    TileBox box;
    const int64_t steps[3] = {a.size[1] * a.size[2] * a.point_step, a.size[2] * a.point_step, a.point_step};
    box.data = a.data + sample * a.sample_step + block * a.block_step;
    for (size_t i = 0; i < 3; ++i) {
        box.step[i] = steps[i];
        box.data += first[i] * steps[i];
        box.begin[i] = std::max<int64_t>(0, -first[i]);
        box.end[i] = std::min(count[i], a.size[i] - first[i]);
    }
    return box;
}

}  // namespace

int TileWorker::parts(int64_t elements) const {
    CpuContext context = p_.context;
    context.threads = threads_;
    return parts_for(context, elements);
}

void TileWorker::run(int64_t g, const Range& tiles) const {
    for (int64_t first = tiles.begin; first < tiles.end; first += p_.chunk) {
        const Range chunk{first, std::min(first + p_.chunk, tiles.end)};
        p_.mirrored() ? sources(g, chunk, o_.y, f()) : sources(g, chunk, o_.x, c());
        if (p_.sums()) gradients(g, chunk);
        p_.streamed() ? streamed_products(g, chunk.size()) : products(chunk.size(), first > tiles.begin);
        if (p_.sums()) continue;
        p_.mirrored() ? results(g, chunk, o_.x, c()) : results(g, chunk, o_.y, f());
    }
}

// The points of a tile's transform that begin at `data`, `step` floats apart.
TileBox TileWorker::points(float* data, int64_t step) const {
    const int64_t last = p_.fourier ? p_.size / 2 + 1 : p_.tile[2];
    TileBox box;
    box.data = data;
    box.step[2] = step;
    box.step[1] = last * step;
    box.step[0] = p_.tile[1] * last * step;
    for (size_t i = 0; i < 3; ++i) box.end[i] = p_.tile[i];
    return box;
}

TileArgs TileWorker::args(int part) const {
    TileArgs a{.lanes = b(), .active = {p_.active[0], p_.active[1], p_.active[2]}, .from = {}, .to = {}, .size = p_.size};
    a.scratch = m_.scratch + part * p_.scratch_floats();
    return a;
}

void TileWorker::transform(TileStep step, TileArgs& a) const {
    const auto& kernels = vector_kernels();
    if (!p_.fourier) return kernels.winograd_tile(static_cast<int>(p_.outputs), step, a);
    const bool back = step == TileStep::Output || step == TileStep::WeightTurned;
    for (int64_t i = 0; i < a.count; ++i) {
        back ? kernels.fourier_inverse(a) : kernels.fourier_forward(a);
        a.from.data += a.from_step;
        a.to.data += a.to_step;
    }
}

TileWorker::Place TileWorker::place(int64_t tile) const {
    const int64_t in_sample = tile % volume(p_.tiles);
    return {tile / volume(p_.tiles),
            {in_sample / (p_.tiles[1] * p_.tiles[2]) * p_.step[0], in_sample / p_.tiles[2] % p_.tiles[1] * p_.step[1],
             in_sample % p_.tiles[2] * p_.step[2]}};
}

// Calls fn(part, place in the chunk, tile's place, some of its blocks) for all tiles of the range and blocks, on threads.
template <class Fn>
void TileWorker::each(const Range& tiles, int64_t blocks, const Fn& fn) const {
    in_parts(parts(tiles.size() * blocks * b() * p_.points), tiles.size() * blocks, [&](int part, int64_t begin, int64_t end) {
        for (int64_t unit = begin; unit < end;) {
            const int64_t number = unit / blocks, first = unit % blocks;
            const Range some{first, std::min(blocks, first + end - unit)};
            fn(part, number, place(tiles.begin + number), some);
            unit += some.size();
        }
    });
}

void TileWorker::sources(int64_t g, const Range& tiles, const Blocked& from, const Matrices& to) const {
    each(tiles, to.blocks, [&](int part, int64_t number, const Place& place, const Range& some) {
        TileArgs a = args(part);
        Three first;
        for (size_t i = 0; i < 3; ++i) first[i] = place.first[i] - p_.padding(i);
        a.from = box_of(from, place.sample, g * to.blocks + some.begin, first, p_.tile);
        a.to = points(to, number, some.begin);
        a.part_step = to.blocks * b();
        a.count = some.size();
        a.from_step = from.block_step;
        a.to_step = b();
        transform(TileStep::Input, a);
    });
}

void TileWorker::results(int64_t g, const Range& tiles, const Blocked& to, const Matrices& from) const {
    each(tiles, from.blocks, [&](int part, int64_t number, const Place& place, const Range& some) {
        TileArgs a = args(part);
        a.from = points(from, number, some.begin);
        a.to = box_of(to, place.sample, g * from.blocks + some.begin, place.first, p_.step);
        a.part_step = from.blocks * b();
        a.count = some.size();
        a.from_step = b();
        a.to_step = to.block_step;
        transform(TileStep::Output, a);
    });
}

// dy's tiles for the weight gradient.
void TileWorker::gradients(int64_t g, const Range& tiles) const {
    const int64_t blocks = p_.f_blocks();
    each(tiles, blocks, [&](int part, int64_t number, const Place& place, const Range& some) {
        TileArgs a = args(part);
        a.from = box_of(o_.y, place.sample, g * blocks + some.begin, place.first, p_.step);
        a.to = points(f(), number, some.begin);
        a.part_step = blocks * b();
        a.count = some.size();
        a.from_step = o_.y.block_step;
        a.to_step = b();
        transform(TileStep::OutputTurned, a);
    });
}

// Between the weights, blocks of [source's channels][result's], and their transform, whose rows of two blocks of results follow each other.
void TileWorker::weight_rows(int64_t g, int part, const Block& block, const Weights& spectrum, bool back) const {
    for (int64_t row = block.row; row < block.row + block.rows;) {
        const Range rows{row, std::min(block.row + block.rows, row + kRows)};
        for (int64_t i = 0; i < block.results; ++i) {
            float* const at = spectrum.data + (row - block.row) * 2 * b() + i * b();
            few_weight_rows(g, part, block.result + i, rows, {at, spectrum.point_step, spectrum.part_step}, back);
        }
        row = rows.end;
    }
}

// The same for one block of results, and rows of one block.
void TileWorker::few_weight_rows(int64_t g, int part, int64_t result, const Range& rows, const Weights& spectrum, bool back) const {
    const ConvView& v = p_.view;
    const int64_t source = rows.begin / b(), f = g * p_.f_blocks() + (p_.mirrored() ? source : result), c = p_.mirrored() ? result : source;
    const int64_t block = v.taps() * b() * b();
    TileBox taps, points_box = points(spectrum.data, spectrum.point_step);
    taps.data = o_.w + (f * p_.c_blocks() + c) * block + rows.begin % b() * b();
    if (!back) {  // the rows that come next lie where the processor does not look by itself
        const float* const next = taps.data + (p_.mirrored() ? p_.c_blocks() : 1) * block;
        for (int64_t tap = 0; tap < v.taps(); ++tap)
            for (int64_t row = 0; row < rows.size(); ++row) __builtin_prefetch(next + (tap * b() + row) * b());
    }
    int64_t step = b() * b();
    for (size_t i = 3; i-- > 0; step *= v.kernel[i]) {
        taps.step[i] = p_.mirrored() ? -step : step;
        if (p_.mirrored()) taps.data += (v.kernel[i] - 1) * step;
        taps.end[i] = v.extent(i);
        taps.spread[i] = v.dilation[i];
    }
    TileArgs a = args(part);
    a.from = back ? points_box : taps;
    a.to = back ? taps : points_box;
    a.part_step = spectrum.part_step;
    a.count = rows.size();
    a.from_step = back ? 2 * b() : b();
    a.to_step = back ? b() : 2 * b();
    transform(back ? TileStep::WeightTurned : TileStep::Weight, a);
}

// All of a group's at once, panel by panel.
void TileWorker::all_weights(int64_t g, bool back) const {
    const int64_t blocks = p_.source_rows() / b(), rows = p_.source_rows(), results = p_.result_blocks(), panels = (results + 1) / 2;
    in_parts(parts(rows * results * b() * p_.points), panels * blocks, [&](int part, int64_t begin, int64_t end) {
        for (int64_t unit = begin; unit < end; ++unit) {
            const int64_t panel = unit / blocks, row = unit % blocks * b();
            float* const at = m_.weights + (panel * rows + row) * 2 * b();
            weight_rows(g, part, {row, b(), 2 * panel, std::min<int64_t>(2, results - 2 * panel)},
                        {at, p_.weight_step(), p_.weight_floats() / p_.parts}, back);
        }
    });
}

// At every point: result = source times weights, or for the weight gradient weights (+)= x's tiles, turned, times dy's.
void TileWorker::products(int64_t tiles, bool add) const {
    in_parts(static_cast<int>(std::min<int64_t>(p_.points, threads_)), p_.points, [&](int, int64_t begin, int64_t end) {
        for (int64_t point = begin; point < end; ++point) {
            const Weights w{m_.weights + point * p_.weight_step(), p_.weight_step(), p_.weight_floats() / p_.parts};
            const Block all{0, p_.source_rows(), 0, p_.result_blocks()};
            p_.sums() ? sum_point(point, tiles, all, w, add) : multiply_point(point, tiles, all, w, false);
        }
    });
}

// The same where a few rows of a panel are transformed at a time, into memory that stays in the nearest cache, and used at once.
void TileWorker::streamed_products(int64_t g, int64_t tiles) const {
    const int64_t results = p_.result_blocks(), rows = p_.source_rows(), panels = (results + 1) / 2;
    in_parts(static_cast<int>(std::min<int64_t>(panels, threads_)), panels, [&](int part, int64_t begin, int64_t end) {
        const int64_t row = 2 * b(), part_step = p_.weight_rows * row;
        float* const own = m_.weights + part * p_.points * p_.streamed_step();
        for (int64_t unit = begin * rows; unit < end * rows;) {
            const int64_t panel = unit / rows, first = unit % rows, number = std::min(p_.weight_rows, rows - first);
            const Block block{first, number, 2 * panel, std::min<int64_t>(2, results - 2 * panel)};
            const Weights held{own, p_.streamed_step(), part_step};
            if (!p_.sums()) weight_rows(g, part, block, held, false);
            for (int64_t point = 0; point < p_.points; ++point) {
                const Weights w{own + point * held.point_step, held.point_step, part_step};
                p_.sums() ? sum_point(point, tiles, block, w, false) : multiply_point(point, tiles, block, w, first > 0);
            }
            if (p_.sums()) weight_rows(g, part, block, held, true);
            unit += number;
        }
    });
}

// A convolution of a network is a correlation: complex weights are conjugated.
void TileWorker::multiply_point(int64_t point, int64_t tiles, const Block& block, const Weights& w, bool more) const {
    const int64_t cf = p_.c_floats(), ff = p_.f_floats();
    float *const c = m_.c_tiles + point * p_.c_step(), *const f = m_.f_tiles + point * p_.f_step();
    const float* const source = (p_.mirrored() ? f : c) + block.row;
    float* const result = (p_.mirrored() ? c : f) + block.result * b();
    const int64_t source_row = p_.mirrored() ? ff : cf, result_row = p_.mirrored() ? cf : ff;
    const auto multiply = [&](int s, int r, int part, float scale, bool add) {
        vector_kernels().product({.lanes = b(),
                                  .m = tiles,
                                  .blocks = block.results,
                                  .k = block.rows,
                                  .a = source + s * source_row / p_.parts,
                                  .b = w.data + part * w.part_step,
                                  .c = result + r * result_row / p_.parts,
                                  .a_row = source_row,
                                  .a_column = 1,
                                  .b_row = 2 * b(),
                                  .b_panel = block.rows * 2 * b(),
                                  .c_row = result_row,
                                  .c_panel = 2 * b(),
                                  .add = add || more,
                                  .scale = scale});
    };
    multiply(0, 0, 0, 1, false);
    if (p_.parts == 1) return;
    multiply(1, 0, 1, 1, true);
    multiply(1, 1, 0, 1, false);
    multiply(0, 1, 1, -1, true);
}

// x conj(dy), summed over tiles.
void TileWorker::sum_point(int64_t point, int64_t tiles, const Block& block, const Weights& w, bool more) const {
    const int64_t c = p_.c_floats() / p_.parts, f = p_.f_floats() / p_.parts;
    const float* const x = m_.c_tiles + point * p_.c_step() + block.row;
    const float* const dy = m_.f_tiles + point * p_.f_step() + block.result * b();
    const auto multiply = [&](int xi, int yi, int part, float scale, bool add) {
        vector_kernels().product({.lanes = b(),
                                  .m = block.rows,
                                  .blocks = block.results,
                                  .k = tiles,
                                  .a = x + xi * c,
                                  .b = dy + yi * f,
                                  .c = w.data + part * w.part_step,
                                  .a_row = 1,
                                  .a_column = p_.c_floats(),
                                  .b_row = p_.f_floats(),
                                  .b_panel = 2 * b(),
                                  .c_row = 2 * b(),
                                  .c_panel = block.rows * 2 * b(),
                                  .add = add || more,
                                  .scale = scale});
    };
    multiply(0, 0, 0, 1, false);
    if (p_.parts == 1) return;
    multiply(1, 1, 0, 1, true);
    multiply(1, 0, 1, 1, false);
    multiply(0, 1, 1, -1, true);
}

}  // namespace convoy::cpu
