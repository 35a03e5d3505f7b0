// Winograd's F(2, 3) and F(4, 3), nested over one, two or three dims: windows of 3 elements, stride 1.
#include "kernels/cpu/conv/tiles.h"

namespace convoy::cpu {

namespace {

template <int kOutputs>
TilePlan plan(const ConvView& v, const CpuContext& context) {
    TilePlan p{.view = v, .context = context, .fourier = false, .outputs = kOutputs};
    for (size_t i = 0; i < 3; ++i) {
        p.active[i] = v.kernel[i] == 3;
        p.tile[i] = p.active[i] ? kOutputs + 2 : 1;
        p.step[i] = p.active[i] ? kOutputs : 1;
    }
    finish_plan(p);
    return p;
}

template <int kOutputs>
ConvOffers offers(const ConvView& v, const CpuContext& context) {
    if (auto reason = tiles_refusal(v, context); !reason.empty()) return ConvOffers::refuse(std::move(reason));
    for (size_t i = 0; i < 3; ++i)
        if (v.kernel[i] != 3 && v.kernel[i] != 1) return ConvOffers::refuse("the window is not 3 elements wide");
    if (!v.all_ones(v.dilation)) return ConvOffers::refuse("the window is dilated");
    return tile_offers(plan<kOutputs>(v, context), kOutputs == 4 ? 0.7 : 2);
}

template <int kOutputs>
std::unique_ptr<Kernel> prepare(const ConvCall& call) {
    return prepare_tiles(plan<kOutputs>(call.view, call.context), call);
}

}  // namespace

const ConvAlgorithm& winograd_f2() {
    static const ConvAlgorithm algorithm{"winograd-f2", Numerics::Fast, false, offers<2>, prepare<2>};
    return algorithm;
}

const ConvAlgorithm& winograd_f4() {
    static const ConvAlgorithm algorithm{"winograd-f4", Numerics::Fast, false, offers<4>, prepare<4>};
    return algorithm;
}

}  // namespace convoy::cpu
