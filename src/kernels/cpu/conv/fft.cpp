// Convolution by the Fourier transform of tiles, of stride 1: tiles of 8, 16 or 32 elements along each dim (in three dims 8 or 16), the size that takes
// the fewest operations.
#include <optional>

#include "kernels/cpu/conv/tiles.h"

namespace convoy::cpu {

namespace {

std::optional<TilePlan> plan_of(const ConvView& v, const CpuContext& context, int64_t size) {
    TilePlan p{.view = v, .context = context, .fourier = true, .size = size};
    for (size_t i = 0; i < 3; ++i) {
        p.active[i] = v.kernel[i] > 1 || i == 2;  // the last dim always, because its spectrum is what is halved
        p.tile[i] = p.active[i] ? size : 1;
        p.step[i] = p.active[i] ? size - v.extent(i) + 1 : 1;
        if (p.step[i] < 1) return std::nullopt;
    }
    finish_plan(p);
    return p;
}

std::optional<TilePlan> best_plan(const ConvView& v, const CpuContext& context) {
    std::optional<TilePlan> best;
    for (const int64_t size : {8, 16, 32}) {
        if (size == 32 && v.kernel[0] > 1) continue;
        auto p = plan_of(v, context, size);
        if (p && (!best || p->operations() < best->operations())) best = p;
    }
    return best;
}

ConvOffers offers(const ConvView& v, const CpuContext& context) {
    if (auto reason = tiles_refusal(v, context); !reason.empty()) return ConvOffers::refuse(std::move(reason));
    const auto plan = best_plan(v, context);
    if (!plan) return ConvOffers::refuse("the window spans more than the largest tile");
    return tile_offers(*plan, 3);
}

std::unique_ptr<Kernel> prepare(const ConvCall& call) { return prepare_tiles(*best_plan(call.view, call.context), call); }

}  // namespace

const ConvAlgorithm& fft() {
    static const ConvAlgorithm algorithm{"fft", Numerics::Fast, false, offers, prepare};
    return algorithm;
}

}  // namespace convoy::cpu
