#include "kernels/cpu/conv/tiles.h"

#include <optional>

#include "kernels/cpu/conv/tile_worker.h"
#include "kernels/cpu/own.h"

namespace convoy::cpu {

namespace {

constexpr int64_t kLeastChunk = 48;            // tiles, for products of a good size
constexpr int64_t kLeastShare = 16;            // tiles of a worker
constexpr int64_t kGradientBytes = 64 << 20;   // of the gradients that workers sum apart, at most
constexpr int64_t kStreamedBytes = 512 << 10;  // of transformed weights that one thread makes and uses: half of a second-level cache

Blocked blocked_of(const TilePlan& p, float* data, const Layout& layout, int64_t channels, const Three& size) {
    const int64_t b = p.context.block, padded = p.blocked(channels) * b, points = volume(size);
    if (layout == Layout::channels_last(p.view.rank + 2)) return {data, channels * points, b, channels, size};
    return {data, padded * points, b * points, b, size};
}

// What all workers need besides the operands; without a workspace, only counts its bytes.
struct Memories {
    std::vector<TileMemory> list;
    std::vector<float*> gradients;  // of all workers but the first

    Memories(const TilePlan& p, Scratch& scratch) {
        float* shared = p.own_weights() ? nullptr : scratch.take<float>(p.held_weight_floats());
        for (int i = 0; i < p.workers; ++i) {
            TileMemory m;
            m.weights = p.own_weights() ? scratch.take<float>(p.held_weight_floats()) : shared;
            m.c_tiles = scratch.take<float>(p.points * p.c_step());
            m.f_tiles = scratch.take<float>(p.points * p.f_step());
            m.scratch =
                scratch.take<float>(p.scratch_floats() * (i == 0 ? std::max(1, p.context.threads) : 1));  // all of them transform weights
            list.push_back(m);
            if (p.sums() && i > 0) gradients.push_back(scratch.take<float>(p.gradient_floats()));
        }
    }
};

class TileKernel : public Kernel {
  public:
    TileKernel(const TilePlan& plan, const ConvCall& call) : p_(plan) {
        const Layout &x = operand(call.request, plan.view.conv.x).layout, &y = operand(call.request, plan.view.conv.y).layout;
        TileOperands operands{blocked_of(plan, call.x, x, plan.view.c, plan.view.in),
                              blocked_of(plan, call.y, y, plan.view.f, plan.view.out), call.w};
        Scratch scratch(call.workspace);
        const Memories memories(p_, scratch);
        all_.emplace(p_, operands, memories.list[0], std::max(1, p_.context.threads));
        gradients_.assign(memories.gradients.begin(), memories.gradients.end());
        gradients_.insert(gradients_.begin(), call.w);
        w_ = call.w;
        for (size_t i = 0; i < memories.list.size(); ++i) {
            if (p_.sums() && i > 0) operands.w = memories.gradients[i - 1];
            workers_.emplace_back(p_, operands, memories.list[i], p_.threads_each());
        }
    }

    void run(const StepContext&) override {
        for (int64_t g = 0; g < p_.view.groups; ++g) {
            if (!p_.sums() && !p_.streamed()) all_->all_weights(g, false);
            in_parts(p_.workers, p_.all_tiles(), [&](int part, int64_t begin, int64_t end) {
                const TileWorker& worker = workers_[static_cast<size_t>(part)];
                worker.run(g, {begin, end});
                if (p_.sums() && !p_.streamed()) worker.all_weights(g, true);
            });
        }
        if (!p_.sums() || p_.workers == 1) return;
        const vec::AddArgs args{.inputs = gradients_.data(), .count = p_.workers, .y = w_};
        in_flat_parts(parts_for(p_.context, p_.gradient_floats()), p_.gradient_floats(),
                      [&](int, int64_t begin, int64_t end) { vector_kernels().add(args, begin, end); });
    }

  private:
    const TilePlan p_;
    std::optional<TileWorker> all_;  // with all threads
    std::vector<TileWorker> workers_;
    std::vector<const float*> gradients_;  // of each worker
    float* w_;
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
    const int threads = std::max(1, p.context.threads);
    const bool shares = p.all_tiles() >= kLeastShare * threads && (!p.sums() || (threads - 1) * p.gradient_floats() * 4 <= kGradientBytes);
    p.workers = shares ? threads : 1;
    const int64_t share = (p.all_tiles() + p.workers - 1) / p.workers, cached = p.context.cached_bytes / std::max(2, p.workers);
    // Large transformed weights cost more to write, and to read for every chunk, than the tiles: they are made as they are used, and chunks are larger. Threads that work on
    // one chunk then share out the panels, so there must be enough of those.
    const int64_t tile_bytes = p.points * (p.c_floats() + p.f_floats()) * 4, weight_bytes = p.points * p.weight_floats() * 4;
    const bool large = weight_bytes > p.context.cached_bytes / 2 && (p.result_blocks() + 1) / 2 >= p.threads_each();
    int64_t chunk_bytes = cached;
    if (large) chunk_bytes = p.sums() ? std::min(2 * weight_bytes, 8 * cached) : cached / 2 * 5;
    p.chunk = std::min(share, std::max(kLeastChunk, chunk_bytes / tile_bytes));
    const int64_t chunks = (share + p.chunk - 1) / p.chunk;
    p.chunk = (share + chunks - 1) / chunks;
    if (!large || (p.sums() && chunks > 1)) return;  // sums over several chunks are kept as they are, transformed
    const int64_t b = p.context.block, row_bytes = p.points * p.parts * 2 * b * 4;
    p.weight_rows = std::clamp(kStreamedBytes / row_bytes / b * b, b, p.source_rows());
}

int64_t TilePlan::scratch_floats() const {
    if (!fourier) return 0;
    return 2 * points * context.block;
}

int64_t TilePlan::weight_floats() const { return parts * source_rows() * ((result_blocks() + 1) / 2 * 2) * context.block; }

int64_t TilePlan::held_weight_floats() const {
    if (!streamed()) return points * weight_step();
    return std::min<int64_t>((result_blocks() + 1) / 2, threads_each()) * points * streamed_step();
}

int64_t TilePlan::gradient_floats() const { return view.groups * c_blocks() * f_blocks() * view.taps() * context.block * context.block; }

int64_t TilePlan::workspace_bytes() const {
    Scratch scratch;
    const Memories memories(*this, scratch);
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
