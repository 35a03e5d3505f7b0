#include "kernels/cpu/conv/tiles.h"

#include "kernels/cpu/own.h"

namespace convoy::cpu {

namespace {

using vec::TileArgs;
using vec::TileBox;
using vec::TileStep;

constexpr int64_t kLeastChunk = 48;  // tiles, for products of a good size

// An activation as vectors of a block's channels.
struct Blocked {
    float* data = nullptr;
    int64_t sample_step = 0, block_step = 0, point_step = 0;
    Three size{1, 1, 1};
};

Blocked blocked_of(const TilePlan& p, float* data, const Layout& layout, int64_t channels, const Three& size) {
    const int64_t b = p.context.block, padded = p.blocked(channels) * b, points = volume(size);
    if (layout == Layout::channels_last(p.view.rank + 2)) return {data, channels * points, b, channels, size};
    return {data, padded * points, b * points, b, size};
}

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

class TileKernel : public Kernel {
  public:
    TileKernel(const TilePlan& plan, const ConvCall& call) : p_(plan), w_(call.w) {
        const Layout &x = operand(call.request, plan.view.conv.x).layout, &y = operand(call.request, plan.view.conv.y).layout;
        x_ = blocked_of(plan, call.x, x, plan.view.c, plan.view.in);
        y_ = blocked_of(plan, call.y, y, plan.view.f, plan.view.out);
        Scratch scratch(call.workspace);
        weights_ = scratch.take<float>(plan.points * plan.weight_floats());
        c_tiles_ = scratch.take<float>(plan.points * plan.chunk * plan.c_floats());
        f_tiles_ = scratch.take<float>(plan.points * plan.chunk * plan.f_floats());
        scratch_ = scratch.take<float>(plan.scratch_floats() * std::max(1, plan.context.threads));
    }

    void run(const StepContext&) override {
        for (int64_t g = 0; g < p_.view.groups; ++g) {
            if (!p_.sums()) weights(g, false);
            for (int64_t first = 0; first < p_.all_tiles(); first += p_.chunk) {
                const Range tiles{first, std::min(first + p_.chunk, p_.all_tiles())};
                if (!p_.mirrored()) sources(g, tiles, x_, p_.c_blocks(), c_tiles_, p_.c_floats());
                if (p_.mirrored()) sources(g, tiles, y_, p_.f_blocks(), f_tiles_, p_.f_floats());
                if (p_.sums()) gradients(g, tiles);
                products(tiles.size(), first > 0);
                if (p_.sums()) continue;
                p_.mirrored() ? results(g, tiles, x_, p_.c_blocks(), c_tiles_, p_.c_floats())
                              : results(g, tiles, y_, p_.f_blocks(), f_tiles_, p_.f_floats());
            }
            if (p_.sums()) weights(g, true);
        }
    }

  private:
    int64_t b() const { return p_.context.block; }

    // The points of a tile's transform that begin at `data`, `step` floats apart.
    TileBox points(float* data, int64_t step) const {
        const int64_t last = p_.fourier ? p_.size / 2 + 1 : p_.tile[2];
        TileBox box;
        box.data = data;
        box.step[2] = step;
        box.step[1] = last * step;
        box.step[0] = p_.tile[1] * last * step;
        for (size_t i = 0; i < 3; ++i) box.end[i] = p_.tile[i];
        return box;
    }

    TileArgs args(int part) const {
        TileArgs a{.lanes = b(), .active = {p_.active[0], p_.active[1], p_.active[2]}, .from = {}, .to = {}, .size = p_.size};
        a.scratch = scratch_ + part * p_.scratch_floats();
        return a;
    }

    void transform(TileStep step, const TileArgs& a) const {
        const auto& kernels = vector_kernels();
        if (!p_.fourier) return kernels.winograd_tile(static_cast<int>(p_.outputs), step, a);
        const bool back = step == TileStep::Output || step == TileStep::WeightTurned;
        back ? kernels.fourier_inverse(a) : kernels.fourier_forward(a);
    }

    struct Place {
        int64_t sample;
        Three first;  // of the results
    };
    Place place(int64_t tile) const {
        const int64_t in_sample = tile % volume(p_.tiles);
        return {tile / volume(p_.tiles),
                {in_sample / (p_.tiles[1] * p_.tiles[2]) * p_.step[0], in_sample / p_.tiles[2] % p_.tiles[1] * p_.step[1],
                 in_sample % p_.tiles[2] * p_.step[2]}};
    }

    // Calls fn(part, place in the chunk, tile's place, block) for all tiles of the range and blocks, on threads.
    template <class Fn>
    void each(const Range& tiles, int64_t blocks, const Fn& fn) const {
        in_parts(parts_for(p_.context, tiles.size() * blocks * b() * p_.points), tiles.size() * blocks,
                 [&](int part, int64_t begin, int64_t end) {
                     for (int64_t unit = begin; unit < end; ++unit)
                         fn(part, unit / blocks, place(tiles.begin + unit / blocks), unit % blocks);
                 });
    }

    float* at(float* matrices, int64_t number, int64_t floats, int64_t block) const { return matrices + number * floats + block * b(); }

    void sources(int64_t g, const Range& tiles, const Blocked& from, int64_t blocks, float* to, int64_t floats) const {
        each(tiles, blocks, [&](int part, int64_t number, const Place& place, int64_t block) {
            TileArgs a = args(part);
            Three first;
            for (size_t i = 0; i < 3; ++i) first[i] = place.first[i] - p_.padding(i);
            a.from = box_of(from, place.sample, g * blocks + block, first, p_.tile);
            a.to = points(at(to, number, floats, block), p_.chunk * floats);
            a.part_step = blocks * b();
            transform(TileStep::Input, a);
        });
    }

    void results(int64_t g, const Range& tiles, const Blocked& to, int64_t blocks, float* from, int64_t floats) const {
        each(tiles, blocks, [&](int part, int64_t number, const Place& place, int64_t block) {
            TileArgs a = args(part);
            a.from = points(at(from, number, floats, block), p_.chunk * floats);
            a.to = box_of(to, place.sample, g * blocks + block, place.first, p_.step);
            a.part_step = blocks * b();
            transform(TileStep::Output, a);
        });
    }

    // dy's tiles for the weight gradient.
    void gradients(int64_t g, const Range& tiles) const {
        const int64_t blocks = p_.f_blocks();
        each(tiles, blocks, [&](int part, int64_t number, const Place& place, int64_t block) {
            TileArgs a = args(part);
            a.from = box_of(y_, place.sample, g * blocks + block, place.first, p_.step);
            a.to = points(at(f_tiles_, number, p_.f_floats(), block), p_.chunk * p_.f_floats());
            a.part_step = blocks * b();
            transform(TileStep::OutputTurned, a);
        });
    }

    // Between the weights, blocks of [source's channels][result's], and their transform: at every point, for every part, panels of two blocks of the
    // result's channels, each [source's channels][two blocks].
    void weights(int64_t g, bool back) const {
        const int64_t sources = p_.mirrored() ? p_.f_blocks() : p_.c_blocks(), results = p_.mirrored() ? p_.c_blocks() : p_.f_blocks();
        const int64_t rows = sources * b();
        const ConvView& v = p_.view;
        in_parts(parts_for(p_.context, rows * results * b() * p_.points), rows * results, [&](int part, int64_t begin, int64_t end) {
            for (int64_t unit = begin; unit < end; ++unit) {
                const int64_t result = unit / rows, source = unit % rows;
                const int64_t f = g * p_.f_blocks() + (p_.mirrored() ? source / b() : result), c = p_.mirrored() ? result : source / b();
                TileBox taps, spectrum = points(weights_ + (result / 2 * rows + source) * 2 * b() + result % 2 * b(), p_.weight_floats());
                taps.data = w_ + ((f * p_.c_blocks() + c) * v.taps() * b() + source % b()) * b();
                int64_t step = b() * b();
                for (size_t i = 3; i-- > 0; step *= v.kernel[i]) {
                    taps.step[i] = p_.mirrored() ? -step : step;
                    if (p_.mirrored()) taps.data += (v.kernel[i] - 1) * step;
                    taps.end[i] = v.extent(i);
                    taps.spread[i] = v.dilation[i];
                }
                TileArgs a = args(part);
                a.from = back ? spectrum : taps;
                a.to = back ? taps : spectrum;
                a.part_step = p_.weight_floats() / p_.parts;
                transform(back ? TileStep::WeightTurned : TileStep::Weight, a);
            }
        });
    }

    // At every point: result = source times weights, or for the weight gradient weights (+)= x's tiles, turned, times dy's.
    void products(int64_t tiles, bool add) const {
        const int64_t cf = p_.c_floats(), ff = p_.f_floats();
        in_parts(static_cast<int>(std::min<int64_t>(p_.points, std::max(1, p_.context.threads))), p_.points,
                 [&](int, int64_t begin, int64_t end) {
                     for (int64_t point = begin; point < end; ++point) {
                         float *const c = c_tiles_ + point * p_.chunk * cf, *const f = f_tiles_ + point * p_.chunk * ff;
                         float* const w = weights_ + point * p_.weight_floats();
                         if (p_.sums())
                             sum_point(tiles, c, f, w, add);
                         else if (p_.mirrored())
                             multiply_point(tiles, f, ff / p_.parts, w, c, cf / p_.parts);
                         else
                             multiply_point(tiles, c, cf / p_.parts, w, f, ff / p_.parts);
                     }
                 });
    }

    // A convolution of a network is a correlation: complex weights are conjugated.
    void multiply_point(int64_t tiles, const float* source, int64_t sources, const float* w, float* result, int64_t results) const {
        const auto multiply = [&](int s, int r, int part, float scale, bool add) {
            vector_kernels().product({.lanes = b(),
                                      .m = tiles,
                                      .blocks = results / b(),
                                      .k = sources,
                                      .a = source + s * sources,
                                      .b = w + part * p_.weight_floats() / p_.parts,
                                      .c = result + r * results,
                                      .a_row = p_.parts * sources,
                                      .a_column = 1,
                                      .b_row = 2 * b(),
                                      .b_panel = sources * 2 * b(),
                                      .c_row = p_.parts * results,
                                      .c_panel = 2 * b(),
                                      .add = add,
                                      .scale = scale});
        };
        multiply(0, 0, 0, 1, false);
        if (p_.parts == 1) return;
        multiply(1, 0, 1, 1, true);
        multiply(1, 1, 0, 1, false);
        multiply(0, 1, 1, -1, true);
    }

    // x conj(dy), summed over tiles.
    void sum_point(int64_t tiles, const float* x, const float* dy, float* w, bool add) const {
        const int64_t c = p_.c_floats() / p_.parts, f = p_.f_floats() / p_.parts;
        const auto multiply = [&](int xi, int yi, int part, float scale, bool more) {
            vector_kernels().product({.lanes = b(),
                                      .m = c,
                                      .blocks = f / b(),
                                      .k = tiles,
                                      .a = x + xi * c,
                                      .b = dy + yi * f,
                                      .c = w + part * p_.weight_floats() / p_.parts,
                                      .a_row = 1,
                                      .a_column = p_.c_floats(),
                                      .b_row = p_.f_floats(),
                                      .b_panel = 2 * b(),
                                      .c_row = 2 * b(),
                                      .c_panel = c * 2 * b(),
                                      .add = more,
                                      .scale = scale});
        };
        multiply(0, 0, 0, 1, add);
        if (p_.parts == 1) return;
        multiply(1, 1, 0, 1, true);
        multiply(1, 0, 1, 1, add);
        multiply(0, 1, 1, -1, true);
    }

    TilePlan p_;
    float* w_;
    Blocked x_, y_;
    float *weights_, *c_tiles_, *f_tiles_, *scratch_;
};

}  // namespace

std::string tiles_refusal(const ConvView& v, const CpuContext& context) {
    if (!v.all_ones(v.stride)) return "the stride is not 1";
    if (v.taps() == 1) return "the window has a single element";
    if (v.groups > 1 && (v.channels() % context.block != 0 || v.filters() % context.block != 0))
        return fmt::format("the channels of a group are no multiple of {}", context.block);
    return "";
}

void finish_plan(TilePlan& p) {
    p.points = 1;
    for (size_t i = 0; i < 3; ++i) {
        p.tiles[i] = (p.result()[i] + p.step[i] - 1) / p.step[i];
        p.points *= p.fourier && i == 2 ? p.size / 2 + 1 : p.tile[i];
    }
    p.parts = p.fourier ? 2 : 1;
    const int64_t bytes = p.points * (p.c_floats() + p.f_floats()) * 4;
    p.chunk = std::min(p.all_tiles(), std::max(kLeastChunk, p.context.cached_bytes / 2 / bytes));
    const int64_t chunks = (p.all_tiles() + p.chunk - 1) / p.chunk;
    p.chunk = (p.all_tiles() + chunks - 1) / chunks;
}

int64_t TilePlan::scratch_floats() const {
    if (!fourier) return 0;
    return 2 * points * context.block;
}

int64_t TilePlan::weight_floats() const {
    const int64_t sources = mirrored() ? f_blocks() : c_blocks(), results = mirrored() ? c_blocks() : f_blocks();
    return parts * sources * ((results + 1) / 2 * 2) * context.block * context.block;
}

int64_t TilePlan::workspace_bytes() const {
    Scratch scratch;
    scratch.take<float>(points * weight_floats());
    scratch.take<float>(points * chunk * c_floats());
    scratch.take<float>(points * chunk * f_floats());
    scratch.take<float>(scratch_floats() * std::max(1, context.threads));
    return scratch.bytes();
}

double TilePlan::operations() const {
    const double c = static_cast<double>(c_floats() / parts), f = static_cast<double>(f_floats() / parts);
    const double all = static_cast<double>(all_tiles()), number = static_cast<double>(points), groups = static_cast<double>(view.groups);
    const double products = 2 * number * all * c * f * (fourier ? 4 : 1);
    double levels = 0;  // operations of a transform per point and channel: a few for every dim, or for every doubling of the tile
    for (size_t i = 0; i < 3; ++i)
        if (active[i]) levels += fourier ? std::log2(static_cast<double>(size)) * 10 : 6;
    return groups * (products + levels * number * (all * (c + f) + c * f));
}

ConvOffers tile_offers(const TilePlan& p, double slowness) {
    ConvOffers result;
    const double floats = static_cast<double>(p.points * (p.c_floats() + p.f_floats())) * static_cast<double>(p.all_tiles());
    const double weights = static_cast<double>(p.points * p.c_floats()) * static_cast<double>(p.f_floats() / p.parts);
    const ConvView& v = p.view;
    const int64_t b = p.context.block;
    for (const bool last : {false, true}) {
        if (last && (v.c % b != 0 || v.f % b != 0)) continue;
        const Layout layout = last ? Layout::channels_last(v.rank + 2) : Layout::blocked(v.rank + 2, b);
        result.list.push_back({.variant = last ? "last" : "blocked",
                               .x = layout,
                               .w = blocked_weights(v, b),
                               .y = layout,
                               .workspace_bytes = p.workspace_bytes(),
                               .operations = p.operations(),
                               .seconds = seconds_of({.operations = p.operations(),
                                                      .bytes = (4 * floats + 16 * weights) * static_cast<double>(v.groups),
                                                      .m = p.chunk,
                                                      .n = p.f_floats(),
                                                      .k = p.c_floats(),
                                                      .slowness = slowness},
                                                     p.context)});
    }
    return result;
}

std::unique_ptr<Kernel> prepare_tiles(const TilePlan& plan, const ConvCall& call) { return std::make_unique<TileKernel>(plan, call); }

}  // namespace convoy::cpu
