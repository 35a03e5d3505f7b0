// Convolution as one matrix product per sample and group over patches: im2col in plain layout, where a patch is a column [C*K.., outputs], and im2row in
// channels-last, where it is a row [outputs, K..*C]. Takes everything; needs memory for all patches of a sample.
#include "kernels/cpu/conv/algorithm.h"
#include "kernels/cpu/conv/patches.h"
#include "kernels/cpu/onednn/gemm.h"
#include "kernels/cpu/own.h"

namespace convoy::cpu {

namespace {

int64_t patch_floats(const ConvView& v) { return v.channels() * v.taps() * v.out_points(); }

// The patches of one tap, as planes.
Planes tap_patches(const ConvView& v, bool last, float* patches, int64_t tap) {
    if (last) return {patches + tap * v.channels(), 1, 0, v.taps() * v.channels(), v.channels()};
    return {patches + tap * v.out_points(), v.channels(), v.taps() * v.out_points(), 1, 1};
}

template <bool kLast>
ConvOffers offers(const ConvView& v, const CpuContext& context) {
    const int rank = v.rank + 2;
    const Layout layout = kLast ? Layout::channels_last(rank) : Layout::plain();
    const bool sum = v.direction() == Direction::GradInput;
    return {.list = {{.variant = kLast ? "last" : "plain",
                      .x = layout,
                      .w = layout,
                      .y = layout,
                      .workspace_bytes = patch_floats(v) * 4,
                      .operations = v.operations() + (sum ? static_cast<double>(v.n * v.groups * patch_floats(v)) : 0),
                      .seconds = seconds_of({.operations = v.operations(),
                                             .bytes = 8.0 * static_cast<double>(v.n * v.groups * patch_floats(v)),
                                             .m = v.filters(),
                                             .n = v.out_points(),
                                             .k = v.channels() * v.taps()},
                                            context)}},
            .refusal = {}};
}

template <bool kLast>
class Im2Kernel : public Kernel {
  public:
    explicit Im2Kernel(const ConvCall& call)
        : v_(call.view), context_(call.context), x_(call.x), w_(call.w), y_(call.y), patches_(static_cast<float*>(call.workspace)) {}

    void run(const StepContext&) override {
        if (v_.direction() == Direction::GradInput) clear(x_, v_.n * v_.c * v_.in_points(), context_);
        for (int64_t n = 0; n < v_.n; ++n)
            for (int64_t g = 0; g < v_.groups; ++g) {
                const Planes x = planes_of(x_, v_, kLast, v_.channels(), v_.in_points(), n, g);
                if (v_.direction() != Direction::GradInput)
                    for (int64_t tap = 0; tap < v_.taps(); ++tap) gather_tap(v_, tap, x, tap_patches(v_, kLast, patches_, tap), context_);
                product(n, g).run();
                if (v_.direction() == Direction::GradInput)
                    for (int64_t tap = 0; tap < v_.taps(); ++tap)
                        add_to_inputs(v_, tap, tap_patches(v_, kLast, patches_, tap), x, context_);
            }
    }

  private:
    Gemm product(int64_t n, int64_t g) const {
        const int64_t k = v_.channels() * v_.taps(), p = v_.out_points(), f = v_.filters();
        float* const w = w_ + g * f * k;
        float* const y = planes_of(y_, v_, kLast, f, p, n, g).data;
        const Factor weights{w, k}, weights_turned{w, k, true};
        if constexpr (kLast) {
            const int64_t step = v_.f;
            switch (v_.direction()) {
                case Direction::Forward: return {p, f, k, {patches_, k}, weights_turned, y, step};
                case Direction::GradInput: return {p, k, f, {y, step}, weights, patches_, k};
                default: return {f, k, p, {y, step, true}, {patches_, k}, w, k, n > 0};
            }
        } else {
            switch (v_.direction()) {
                case Direction::Forward: return {f, p, k, weights, {patches_, p}, y, p};
                case Direction::GradInput: return {k, p, f, weights_turned, {y, p}, patches_, p};
                default: return {f, k, p, {y, p}, {patches_, p, true}, w, k, n > 0};
            }
        }
    }

    ConvView v_;
    CpuContext context_;
    float *x_, *w_, *y_, *patches_;
};

template <bool kLast>
std::unique_ptr<Kernel> prepare(const ConvCall& call) {
    return std::make_unique<Im2Kernel<kLast>>(call);
}

}  // namespace

const ConvAlgorithm& im2col() {
    static const ConvAlgorithm algorithm{"im2col", Numerics::Exact, false, offers<false>, prepare<false>};
    return algorithm;
}

const ConvAlgorithm& im2row() {
    static const ConvAlgorithm algorithm{"im2row", Numerics::Exact, false, offers<true>, prepare<true>};
    return algorithm;
}

}  // namespace convoy::cpu
