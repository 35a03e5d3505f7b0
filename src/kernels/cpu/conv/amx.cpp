// Convolution as products of bf16 tiles (vector/amx.h), without groups, in the blocked layout.
//
// Sources are laid out on a grid that has room for the padding, for all samples one after the other, so that one number q names a point. Results have
// the numbers of the grid too; those that fall on the padding are computed and thrown away. A tap then is a fixed distance: result q sees source
// q + shift. A stride makes several planes of the source (forward), or several passes with some of the taps each (input gradient). A thread takes a
// range of q in bands whose split sources stay in the cache, and goes over the weights once for each.
#include "kernels/cpu/vector/amx.h"
#include "kernels/cpu/conv/algorithm.h"
#include "kernels/cpu/own.h"

namespace convoy::cpu {

namespace {

using vec::Half;
using vec::kDeep;
using vec::kTile;
using vec::kTileHalves;

int64_t up(int64_t count, int64_t of) { return (count + of - 1) / of; }

// Points of a tensor that lie on the grid: point j of the grid, along dim i, is element j * step + first.
struct Lattice {
    Three size{1, 1, 1};  // of the tensor
    Three step{1, 1, 1}, first{0, 0, 0};
    Three count{1, 1, 1};  // points of the grid that may be used

    // The element under point j, or -1.
    int64_t element(const Three& j) const {
        int64_t at = 0;
        for (size_t i = 0; i < 3; ++i) {
            const int64_t e = j[i] * step[i] + first[i];
            if (j[i] >= count[i] || e < 0 || e >= size[i]) return -1;
            at = at * size[i] + e;
        }
        return at;
    }
};

struct Tap {
    int64_t number, plane, shift;
};

// One set of results, with the taps that reach them.
struct Pass {
    Lattice results;
    std::vector<Tap> taps;
};

struct Plan {
    int64_t n = 0, sources = 0, results = 0;  // samples, blocks of 16 channels
    Three grid{1, 1, 1};
    std::vector<Lattice> planes;
    std::vector<Pass> passes;
    int64_t reach = 0;  // the largest shift
    int64_t band_bytes = 0;
    int parts = 1;  // threads that have work

    int64_t sample_points() const { return volume(grid); }
    int64_t points() const { return n * sample_points(); }
};

int64_t floor_mod(int64_t a, int64_t b) { return (a % b + b) % b; }

// Forward, and the weights' gradient, whose results are the other factor.
Plan forward_plan(const ConvView& v) {
    Plan plan{.n = v.n, .sources = up(v.c, kTile), .results = up(v.f, kTile)};
    Three most{0, 0, 0}, phases{1, 1, 1};
    for (size_t i = 0; i < 3; ++i) {
        for (int64_t k = 0; k < v.kernel[i]; ++k) most[i] = std::max(most[i], k * v.dilation[i] / v.stride[i]);
        plan.grid[i] = v.out[i] + most[i];
        phases[i] = std::min(v.stride[i], v.extent(i));
    }
    for (int64_t a = 0; a < phases[0]; ++a)
        for (int64_t b = 0; b < phases[1]; ++b)
            for (int64_t c = 0; c < phases[2]; ++c)
                plan.planes.push_back({v.in, v.stride, {a - v.pad[0], b - v.pad[1], c - v.pad[2]}, plan.grid});
    Pass pass{{v.out, {1, 1, 1}, {0, 0, 0}, v.out}, {}};
    for (int64_t t = 0; t < v.taps(); ++t) {
        const Three k = v.tap(t);
        Tap tap{t, 0, 0};
        for (size_t i = 0; i < 3; ++i) {
            const int64_t at = k[i] * v.dilation[i];
            tap.plane = tap.plane * phases[i] + at % v.stride[i];
            tap.shift = tap.shift * plan.grid[i] + at / v.stride[i];
        }
        plan.reach = std::max(plan.reach, tap.shift);
        pass.taps.push_back(tap);
    }
    plan.passes.push_back(std::move(pass));
    return plan;
}

// A result r = j * stride + phase sees dy[j + (phase + pad - k * dilation) / stride] by the taps k for which that is whole.
Plan backward_plan(const ConvView& v) {
    Plan plan{.n = v.n, .sources = up(v.f, kTile), .results = up(v.c, kTile)};
    Three least{0, 0, 0}, most{0, 0, 0}, steps{1, 1, 1};
    const auto offset = [&](size_t i, int64_t phase, int64_t k) { return phase + v.pad[i] - k * v.dilation[i]; };
    for (size_t i = 0; i < 3; ++i) {
        steps[i] = up(v.in[i], v.stride[i]);
        least[i] = INT64_MAX;
        most[i] = INT64_MIN;
        for (int64_t k = 0; k < v.kernel[i]; ++k) {
            const int64_t at = offset(i, floor_mod(-offset(i, 0, k), v.stride[i]), k) / v.stride[i];
            least[i] = std::min(least[i], at);
            most[i] = std::max(most[i], at);
        }
        plan.grid[i] = steps[i] + most[i] - least[i];
    }
    plan.planes.push_back({v.out, {1, 1, 1}, least, plan.grid});
    for (int64_t a = 0; a < v.stride[0]; ++a)
        for (int64_t b = 0; b < v.stride[1]; ++b)
            for (int64_t c = 0; c < v.stride[2]; ++c) plan.passes.push_back({{v.in, v.stride, {a, b, c}, steps}, {}});
    for (int64_t t = 0; t < v.taps(); ++t) {
        const Three k = v.tap(t);
        Tap tap{t, 0, 0};
        int64_t pass = 0;
        for (size_t i = 0; i < 3; ++i) {
            const int64_t phase = floor_mod(-offset(i, 0, k[i]), v.stride[i]);
            pass = pass * v.stride[i] + phase;
            tap.shift = tap.shift * plan.grid[i] + offset(i, phase, k[i]) / v.stride[i] - least[i];
        }
        plan.reach = std::max(plan.reach, tap.shift);
        plan.passes[static_cast<size_t>(pass)].taps.push_back(tap);
    }
    return plan;
}

Plan plan_of(const ConvView& v, const CpuContext& context) {
    Plan plan = v.direction() == Direction::GradInput ? backward_plan(v) : forward_plan(v);
    constexpr int64_t kBandBytes = int64_t{1} << 19;  // a part of a core's second cache
    plan.band_bytes = std::min(kBandBytes, context.cached_bytes);
    plan.parts = static_cast<int>(std::clamp<int64_t>(up(plan.points(), kDeep), 1, std::max(1, context.threads)));
    return plan;
}

// Points of a band, a multiple of 32, when each takes so many bytes and the sources reach further.
int64_t band_of(const Plan& plan, int64_t bytes_each) {
    const int64_t fits = plan.band_bytes / bytes_each - plan.reach;
    const int64_t wanted = std::max<int64_t>({fits, 2 * plan.reach, 256});
    return up(std::min(wanted, plan.points()), kDeep) * kDeep;
}

// The elements under a range of points, in vectors of 16 floats from the beginning of a tensor's first block; -1 for none.
void find_elements(const Plan& plan, const Lattice& lattice, int64_t blocks, int64_t first, int64_t count, int64_t* elements) {
    const int64_t each = plan.sample_points();
    int64_t n = first / each, rest = first % each;
    Three j{rest / (plan.grid[1] * plan.grid[2]), rest / plan.grid[2] % plan.grid[1], rest % plan.grid[2]};
    for (int64_t q = 0; q < count; ++q) {
        const int64_t e = n < plan.n ? lattice.element(j) : -1;
        elements[q] = e < 0 ? -1 : n * blocks * volume(lattice.size) + e;
        for (int i = 2; i >= 0; --i) {
            const auto d = static_cast<size_t>(i);
            if (++j[d] < plan.grid[d]) break;
            j[d] = 0;
            if (i == 0) ++n;
        }
    }
}

// --- Forward and input gradient ---------------------------------------------------------------------------------------------------

// What the kernel keeps in its workspace.
struct Memory {
    Half* weights;
    struct Own {  // of a thread
        Half* sources;
        int64_t *from, *to;
    };
    std::vector<Own> own;
    int64_t bytes;
};

struct Sizes {
    int64_t deep, weights, band, lane;  // source blocks of 32; halves of split weights; points of a band, and of a band with its reach
    explicit Sizes(const Plan& plan)
        : deep(up(plan.sources, 2)),
          weights(0),
          band(band_of(plan, static_cast<int64_t>(plan.planes.size()) * deep * kDeep * 2 * static_cast<int64_t>(sizeof(Half)))),
          lane(band + plan.reach + kTile) {
        for (const Pass& pass : plan.passes) weights += plan.results * deep * static_cast<int64_t>(pass.taps.size()) * kTileHalves;
    }
};

Memory memory_of(const Plan& plan, void* workspace) {
    const Sizes sizes(plan);
    Scratch scratch(workspace);
    Memory memory{scratch.take<Half>(2 * sizes.weights), {}, 0};
    for (int t = 0; t < plan.parts; ++t)
        memory.own.push_back({scratch.take<Half>(2 * static_cast<int64_t>(plan.planes.size()) * sizes.deep * sizes.lane * kDeep),
                              scratch.take<int64_t>(sizes.lane), scratch.take<int64_t>(sizes.band + kTile)});
    memory.bytes = scratch.bytes();
    return memory;
}

class TileKernel : public Kernel {
  public:
    explicit TileKernel(const ConvCall& call)
        : v_(call.view),
          plan_(plan_of(v_, call.context)),
          sizes_(plan_),
          w_(call.w),
          memory_(memory_of(plan_, call.workspace)),
          back_(v_.direction() == Direction::GradInput) {
        source_ = back_ ? call.y : call.x;
        result_ = back_ ? call.x : call.y;
        const int64_t plane = sizes_.deep * sizes_.lane * kDeep;
        low_ = static_cast<int64_t>(plan_.planes.size()) * plane;
        int64_t weights = 0;
        for (const Pass& pass : plan_.passes) {
            Terms terms{.weights = weights, .a = {}, .b = {}};
            for (int64_t s = 0; s < sizes_.deep; ++s)
                for (const Tap& tap : pass.taps) {
                    terms.a.push_back(tap.plane * plane + (s * sizes_.lane + tap.shift) * kDeep);
                    terms.b.push_back(static_cast<int64_t>(terms.b.size()) * kTileHalves);
                }
            weights += plan_.results * static_cast<int64_t>(terms.b.size()) * kTileHalves;
            terms_.push_back(std::move(terms));
        }
    }

    void run(const StepContext&) override {
        in_parts(plan_.parts, plan_.results, [&](int, int64_t begin, int64_t end) { split_weights(begin, end); });
        in_parts(plan_.parts, up(plan_.points(), kDeep), [&](int part, int64_t begin, int64_t end) {
            vec::begin_tiles();
            const int64_t last = std::min(end * kDeep, plan_.points());
            for (int64_t q = begin * kDeep; q < last; q += sizes_.band)
                band(memory_.own[static_cast<size_t>(part)], q, std::min(q + sizes_.band, last));
            vec::end_tiles();
        });
    }

  private:
    struct Terms {
        int64_t weights;
        std::vector<int64_t> a, b;
    };

    void split_weights(int64_t begin, int64_t end) const {
        static constexpr int64_t kRows[kTile] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
        static constexpr int64_t kNone[kTile] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
        const int64_t taps = v_.taps(), square = kTile * kTile, cs = up(v_.c, kTile);
        for (size_t p = 0; p < plan_.passes.size(); ++p)
            for (int64_t r = begin; r < end; ++r) {
                Half* to = memory_.weights + terms_[p].weights + r * static_cast<int64_t>(terms_[p].b.size()) * kTileHalves;
                for (int64_t s = 0; s < sizes_.deep; ++s)
                    for (const Tap& tap : plan_.passes[p].taps) {
                        for (int64_t block = 2 * s; block < 2 * s + 2; ++block, to += kTileHalves / 2) {
                            const bool there = block < plan_.sources;
                            const int64_t at = (back_ ? block * cs + r : r * cs + block) * taps + tap.number;
                            vec::split_in_turns(there ? w_ + at * square : w_, there ? kRows : kNone, kTile, to, to + sizes_.weights);
                        }
                    }
            }
    }

    void band(const Memory::Own& own, int64_t begin, int64_t end) const {
        const int64_t seen = up(end - begin, kTile) * kTile + plan_.reach;
        for (size_t p = 0; p < plan_.planes.size(); ++p) {
            find_elements(plan_, plan_.planes[p], plan_.sources, begin, seen, own.from);
            const int64_t points = volume(plan_.planes[p].size);
            for (int64_t s = 0; s < sizes_.deep; ++s) {
                Half* const to = own.sources + (static_cast<int64_t>(p) * sizes_.deep + s) * sizes_.lane * kDeep;
                const bool both = 2 * s + 1 < plan_.sources;
                vec::split(source_ + 2 * s * points * kTile, own.from, seen, both ? points * kTile : 0, to, to + low_);
            }
        }
        for (size_t p = 0; p < plan_.passes.size(); ++p) multiply(own, p, begin, end);
    }

    void multiply(const Memory::Own& own, size_t p, int64_t begin, int64_t end) const {
        const Pass& pass = plan_.passes[p];
        const Terms& terms = terms_[p];
        const auto count = static_cast<int64_t>(terms.b.size());
        find_elements(plan_, pass.results, plan_.results, begin, up(end - begin, kTile) * kTile, own.to);
        const int64_t points = volume(pass.results.size);
        alignas(64) float sums[2][2][kTile * kTile];
        for (int64_t r = 0; r < plan_.results; r += 2)
            for (int64_t q = 0; q < end - begin; q += 2 * kTile) {
                const vec::TileSum sum{.m = q + kTile < end - begin ? 2 : 1,
                                       .n = r + 1 < plan_.results ? 2 : 1,
                                       .terms = count,
                                       .a = own.sources + q * kDeep,
                                       .a_at = terms.a.data(),
                                       .a_next = kTile * kDeep,
                                       .a_low = low_,
                                       .a_row = kDeep,
                                       .b = memory_.weights + terms.weights + r * count * kTileHalves,
                                       .b_at = terms.b.data(),
                                       .b_next = count * kTileHalves,
                                       .b_low = sizes_.weights,
                                       .c = {{sums[0][0], sums[0][1]}, {sums[1][0], sums[1][1]}},
                                       .add = false};
                vec::sum_tiles(sum);
                for (int i = 0; i < sum.m; ++i)
                    for (int j = 0; j < sum.n; ++j) vec::store_rows(sums[i][j], result_ + (r + j) * points * kTile, own.to + q + i * kTile);
            }
    }

    ConvView v_;
    Plan plan_;
    Sizes sizes_;
    const float *source_, *w_;
    float* result_;
    Memory memory_;
    bool back_;
    int64_t low_;  // from high halves of sources to low ones
    std::vector<Terms> terms_;
};

// --- Weight gradient --------------------------------------------------------------------------------------------------------------

struct WeightSizes {
    int64_t band, lane, weights;  // points of a band, and with its reach; floats of the weights
    int64_t row, next;            // halves between rows of a tile of sources, and between tiles
    explicit WeightSizes(const ConvView& v, const Plan& plan)
        : band(band_of(plan, (static_cast<int64_t>(plan.planes.size()) * plan.sources + plan.results) * kTile * 2 *
                                 static_cast<int64_t>(sizeof(Half)))),
          lane(up(band + plan.reach, kDeep) * kDeep + kDeep),
          weights(plan.sources * plan.results * v.taps() * kTile * kTile) {
        if (lane / kDeep % 2 == 0) lane += kDeep;  // rows fall into different sets of the cache
        // Without shifts a tile may lie together.
        row = plan.reach == 0 ? kDeep : lane;
        next = plan.reach == 0 ? kTileHalves : kDeep;
    }
};

struct WeightMemory {
    struct Own {
        Half *sources, *results;
        int64_t* elements;
        float* sums;  // nullptr: the weights themselves
    };
    std::vector<Own> own;
    int64_t bytes;
};

WeightMemory weight_memory(const ConvView& v, const Plan& plan, void* workspace) {
    const WeightSizes sizes(v, plan);
    Scratch scratch(workspace);
    WeightMemory memory{{}, 0};
    for (int t = 0; t < plan.parts; ++t)
        memory.own.push_back({scratch.take<Half>(2 * static_cast<int64_t>(plan.planes.size()) * plan.sources * kTile * sizes.lane),
                              scratch.take<Half>(2 * plan.results * kTile * sizes.band), scratch.take<int64_t>(sizes.lane),
                              t == 0 ? nullptr : scratch.take<float>(sizes.weights)});
    memory.bytes = scratch.bytes();
    return memory;
}

// Rows of a result are channels of x, so that it lies as the weights do; x is transposed for that, and a tap is a shift along its rows.
class TileWeightKernel : public Kernel {
  public:
    explicit TileWeightKernel(const ConvCall& call)
        : v_(call.view),
          plan_(plan_of(v_, call.context)),
          sizes_(v_, plan_),
          x_(call.x),
          y_(call.y),
          w_(call.w),
          memory_(weight_memory(v_, plan_, call.workspace)) {
        for (int64_t t = 0; t < sizes_.band / kDeep; ++t) {
            a_.push_back(t * sizes_.next);
            b_.push_back(t * kTileHalves);
        }
        source_low_ = static_cast<int64_t>(plan_.planes.size()) * plan_.sources * kTile * sizes_.lane;
        result_low_ = plan_.results * kTile * sizes_.band;
    }

    void run(const StepContext&) override {
        in_parts(plan_.parts, up(plan_.points(), kDeep), [&](int part, int64_t begin, int64_t end) {
            const auto& own = memory_.own[static_cast<size_t>(part)];
            float* const sums = own.sums ? own.sums : w_;
            std::fill_n(sums, sizes_.weights, 0.0f);
            vec::begin_tiles();
            const int64_t last = std::min(end * kDeep, plan_.points());
            for (int64_t q = begin * kDeep; q < last; q += sizes_.band) band(own, sums, q, std::min(q + sizes_.band, last));
            vec::end_tiles();
        });
        if (plan_.parts == 1) return;
        in_flat_parts(plan_.parts, sizes_.weights, [&](int, int64_t begin, int64_t end) {
            for (int t = 1; t < plan_.parts; ++t) {
                const float* const sums = memory_.own[static_cast<size_t>(t)].sums;
                for (int64_t i = begin; i < end; ++i) w_[i] += sums[i];
            }
        });
    }

  private:
    void band(const WeightMemory::Own& own, float* sums, int64_t begin, int64_t end) const {
        const int64_t chunks = up(end - begin, kDeep);
        split_sources(own, begin, up(chunks * kDeep + plan_.reach, kDeep));
        split_results(own, begin, chunks);
        // The larger factor goes by once; the smaller one stays in the cache.
        if (static_cast<int64_t>(plan_.planes.size()) * plan_.sources > plan_.results) {
            for (int64_t s = 0; s < plan_.sources; s += 2)
                for (int64_t r = 0; r < plan_.results; r += 2) multiply(own, sums, r, s, chunks);
        } else {
            for (int64_t r = 0; r < plan_.results; r += 2)
                for (int64_t s = 0; s < plan_.sources; s += 2) multiply(own, sums, r, s, chunks);
        }
    }

    void multiply(const WeightMemory::Own& own, float* sums, int64_t r, int64_t s, int64_t chunks) const {
        const bool more = s + 1 < plan_.sources, wider = r + 1 < plan_.results;
        for (const Tap& tap : plan_.passes[0].taps) {
            const auto at = [&](int64_t i, int64_t j) {
                return sums + (((r + j) * plan_.sources + s + i) * v_.taps() + tap.number) * kTile * kTile;
            };
            vec::sum_tiles({.m = more ? 2 : 1,
                            .n = wider ? 2 : 1,
                            .terms = chunks,
                            .a = own.sources + (tap.plane * plan_.sources + s) * kTile * sizes_.lane + tap.shift,
                            .a_at = a_.data(),
                            .a_next = kTile * sizes_.lane,
                            .a_low = source_low_,
                            .a_row = sizes_.row,
                            .b = own.results + r * kTile * sizes_.band,
                            .b_at = b_.data(),
                            .b_next = kTile * sizes_.band,
                            .b_low = result_low_,
                            .c = {{at(0, 0), wider ? at(0, 1) : nullptr}, {more ? at(1, 0) : nullptr, more && wider ? at(1, 1) : nullptr}},
                            .add = true});
        }
    }

    void split_sources(const WeightMemory::Own& own, int64_t begin, int64_t chunks) const {
        for (size_t p = 0; p < plan_.planes.size(); ++p) {
            find_elements(plan_, plan_.planes[p], plan_.sources, begin, chunks * kDeep, own.elements);
            const int64_t points = volume(plan_.planes[p].size);
            for (int64_t s = 0; s < plan_.sources; ++s) {
                Half* const to = own.sources + (static_cast<int64_t>(p) * plan_.sources + s) * kTile * sizes_.lane;
                vec::split_transposed(x_ + s * points * kTile, own.elements, chunks * kDeep, to, to + source_low_, sizes_.row, sizes_.next);
            }
        }
    }

    void split_results(const WeightMemory::Own& own, int64_t begin, int64_t chunks) const {
        const Lattice& lattice = plan_.passes[0].results;
        find_elements(plan_, lattice, plan_.results, begin, chunks * kDeep, own.elements);
        const int64_t points = volume(lattice.size);
        for (int64_t r = 0; r < plan_.results; ++r) {
            Half* const to = own.results + r * kTile * sizes_.band;
            vec::split_in_turns(y_ + r * points * kTile, own.elements, chunks * kDeep, to, to + result_low_);
        }
    }

    ConvView v_;
    Plan plan_;
    WeightSizes sizes_;
    const float *x_, *y_;
    float* w_;
    WeightMemory memory_;
    std::vector<int64_t> a_, b_;
    int64_t source_low_, result_low_;
};

// --- The algorithm ----------------------------------------------------------------------------------------------------------------

ConvOffers offers(const ConvView& v, const CpuContext& context) {
    if (!vec::amx_ready()) return ConvOffers::refuse("the processor has no tiles of bf16 (AMX), or the system does not allow them");
    if (context.block != kTile) return ConvOffers::refuse("blocks have other than 16 channels");
    if (v.groups > 1) return ConvOffers::refuse("there are groups");
    const Layout layout = Layout::blocked(v.rank + 2, context.block);
    const Plan plan = plan_of(v, context);
    // Computed besides: padding on the grid, and channels that fill up blocks.
    const double used = static_cast<double>(v.n * v.out_points()) * static_cast<double>(v.c * v.f) /
                        (static_cast<double>(plan.points()) * static_cast<double>(plan.sources * plan.results * kTile * kTile));
    const double operations = v.operations() / std::max(used, 1e-6);
    const int64_t bytes = v.direction() == Direction::GradWeight ? weight_memory(v, plan, nullptr).bytes : memory_of(plan, nullptr).bytes;
    return {
        .list =
            {{.variant = "",
              .x = layout,
              .w = blocked_weights(v, context.block),
              .y = layout,
              .workspace_bytes = bytes,
              .operations = 3 * operations,
              // Cautious, so that it is taken only where it was measured: the threads of a core share its tiles, and may be alone with them or not.
              .seconds = seconds_of({.operations = operations}, context)}},
        .refusal = {}};
}

std::unique_ptr<Kernel> prepare(const ConvCall& call) {
    if (call.view.direction() == Direction::GradWeight) return std::make_unique<TileWeightKernel>(call);
    return std::make_unique<TileKernel>(call);
}

}  // namespace

const ConvAlgorithm& amx() {
    static const ConvAlgorithm algorithm{"amx", Numerics::Fast, false, offers, prepare};
    return algorithm;
}

}  // namespace convoy::cpu
