// Convolution as one matrix product per tap, whose result is shifted and added: kn2row in plain layout, kn2col in channels-last. The weight gradient
// shifts what it reads instead. Takes everything; a stride wastes what is computed between outputs. Needs memory for one activation of a sample.
#include "kernels/cpu/conv/algorithm.h"
#include "kernels/cpu/conv/patches.h"
#include "kernels/cpu/onednn/gemm.h"
#include "kernels/cpu/own.h"

namespace convoy::cpu {

namespace {

// Of one group: the shifted result, or the shifted input.
int64_t scratch_floats(const ConvView& v) {
    return v.direction() == Direction::Forward ? v.filters() * v.in_points() : v.channels() * v.out_points();
}

template <bool kLast>
ConvOffers offers(const ConvView& v, const CpuContext& context) {
    const int rank = v.rank + 2;
    const Layout layout = kLast ? Layout::channels_last(rank) : Layout::plain();
    const bool forward = v.direction() == Direction::Forward;
    const int64_t points = forward ? v.in_points() : v.out_points();
    const double products = v.operations() / static_cast<double>(v.out_points()) * static_cast<double>(points);
    const double sums = static_cast<double>(v.n * v.groups * v.taps() * scratch_floats(v));
    return {.list = {{.variant = kLast ? "last" : "plain",
                      .x = layout,
                      .w = tap_major(v.rank),
                      .y = layout,
                      .workspace_bytes = scratch_floats(v) * 4,
                      .operations = products + (v.direction() == Direction::GradWeight ? 0 : sums),
                      .seconds = seconds_of({.operations = products, .bytes = 12 * sums, .m = v.filters(), .n = points, .k = v.channels()},
                                            context)}},
            .refusal = {}};
}

template <bool kLast>
class Kn2Kernel : public Kernel {
  public:
    explicit Kn2Kernel(const ConvCall& call)
        : v_(call.view), context_(call.context), x_(call.x), w_(call.w), y_(call.y), scratch_(static_cast<float*>(call.workspace)) {}

    void run(const StepContext&) override {
        if (v_.direction() == Direction::GradInput) clear(x_, v_.n * v_.c * v_.in_points(), context_);
        if (v_.direction() == Direction::Forward) clear(y_, v_.n * v_.f * v_.out_points(), context_);
        for (int64_t n = 0; n < v_.n; ++n)
            for (int64_t g = 0; g < v_.groups; ++g)
                for (int64_t tap = 0; tap < v_.taps(); ++tap) run_tap(n, g, tap);
    }

  private:
    void run_tap(int64_t n, int64_t g, int64_t tap) const {
        const Planes x = planes_of(x_, v_, kLast, v_.channels(), v_.in_points(), n, g);
        const Planes y = planes_of(y_, v_, kLast, v_.filters(), v_.out_points(), n, g);
        const int64_t c = v_.channels(), f = v_.filters();
        float* const w = w_ + (tap * v_.f + g * f) * c;
        if (v_.direction() == Direction::Forward) {
            const Planes shifted = scratch(f, v_.in_points());
            multiply({x.data, step(v_.c, v_.in_points())}, {w, c}, v_.in_points(), f, c, shifted.data);
            add_to_outputs(v_, tap, shifted, y, context_);
        } else if (v_.direction() == Direction::GradInput) {
            const Planes shifted = scratch(c, v_.out_points());
            multiply({y.data, step(v_.f, v_.out_points())}, {w, c, true}, v_.out_points(), c, f, shifted.data);
            add_to_inputs(v_, tap, shifted, x, context_);
        } else {
            const Planes shifted = scratch(c, v_.out_points());
            gather_tap(v_, tap, x, shifted, context_);
            const int64_t p = v_.out_points();
            Gemm{f, c, p, {y.data, step(v_.f, p), kLast}, {shifted.data, step(c, p), !kLast}, w, c, n > 0}.run();
        }
    }

    // Floats between rows of an activation's matrix: [points, channels] or [channels, points].
    static int64_t step(int64_t channels, int64_t points) { return kLast ? channels : points; }

    Planes scratch(int64_t channels, int64_t points) const {
        if (kLast) return {scratch_, 1, 0, channels, channels};
        return {scratch_, channels, points, 1, 1};
    }

    // result = activation times weights, which are [results, sums], or turned.
    static void multiply(const Factor& activation, const Factor& weights, int64_t points, int64_t results, int64_t sums, float* result) {
        const Factor turned{weights.data, weights.step, !weights.transposed};
        if (kLast)
            Gemm{points, results, sums, activation, turned, result, results}.run();
        else
            Gemm{results, points, sums, weights, activation, result, points}.run();
    }

    ConvView v_;
    CpuContext context_;
    float *x_, *w_, *y_, *scratch_;
};

template <bool kLast>
std::unique_ptr<Kernel> prepare(const ConvCall& call) {
    return std::make_unique<Kn2Kernel<kLast>>(call);
}

}  // namespace

const ConvAlgorithm& kn2row() {
    static const ConvAlgorithm algorithm{"kn2row", Numerics::Exact, false, offers<false>, prepare<false>};
    return algorithm;
}

const ConvAlgorithm& kn2col() {
    static const ConvAlgorithm algorithm{"kn2col", Numerics::Exact, false, offers<true>, prepare<true>};
    return algorithm;
}

}  // namespace convoy::cpu
