// Scalar-matrix convolution in plain layout: every weight scales a shifted plane, which is added to the result. Row-wise goes along a row of the plane
// at a time, all channels and taps of a result's row following each other; column-wise takes a strip of columns and runs down the rows, so that a row of
// the strip serves all taps above each other. Takes everything and needs no memory; the weight gradient multiplies planes instead, to one number.
#include "kernels/cpu/conv/algorithm.h"
#include "kernels/cpu/conv/patches.h"
#include "kernels/cpu/own.h"

namespace convoy::cpu {

namespace {

constexpr int64_t kStrip = 64;

template <bool kColumns>
ConvOffers offers(const ConvView& v, const CpuContext& context) {
    // Twenty times fewer operations a second than a good convolution; rows that are short make it slower yet.
    const double slowness = 12.0 * (1 + 16.0 / static_cast<double>(v.out[2])) * (v.stride[2] > 1 ? 4 : 1);
    return {.list = {{.variant = "plain",
                      .x = Layout::plain(),
                      .w = Layout::plain(),
                      .y = Layout::plain(),
                      .workspace_bytes = 0,
                      .operations = v.operations(),
                      .seconds = seconds_of({.operations = v.operations() * v.used_part(), .slowness = slowness}, context)}},
            .refusal = {}};
}

// Runs of outputs of a plane and the inputs they see through a tap, in one of the two orders: fn(tap, first output, first input, count).
template <class Fn>
void row_wise(const ConvView& v, const Fn& fn) {
    for (int64_t row = 0; row < v.out[0] * v.out[1]; ++row)
        for (int64_t tap = 0; tap < v.taps(); ++tap) {
            const Three k = v.tap(tap);
            const Range w = v.outputs(2, k[2]);
            const int64_t d = v.at(0, row / v.out[1], k[0]), h = v.at(1, row % v.out[1], k[1]);
            if (d < 0 || d >= v.in[0] || h < 0 || h >= v.in[1] || w.size() == 0) continue;
            fn(tap, row * v.out[2] + w.begin, (d * v.in[1] + h) * v.in[2] + v.at(2, w.begin, k[2]), w.size());
        }
}

template <class Fn>
void column_wise(const ConvView& v, const Fn& fn) {
    for (int64_t strip = 0; strip < v.out[2]; strip += kStrip)
        for (int64_t row = 0; row < v.out[0] * v.out[1]; ++row)
            for (int64_t tap = 0; tap < v.taps(); ++tap) {
                const Three k = v.tap(tap);
                Range w = v.outputs(2, k[2]);
                w = {std::max(w.begin, strip), std::min(w.end, strip + kStrip)};
                const int64_t d = v.at(0, row / v.out[1], k[0]), h = v.at(1, row % v.out[1], k[1]);
                if (d < 0 || d >= v.in[0] || h < 0 || h >= v.in[1] || w.size() == 0) continue;
                fn(tap, row * v.out[2] + w.begin, (d * v.in[1] + h) * v.in[2] + v.at(2, w.begin, k[2]), w.size());
            }
}

template <bool kColumns>
class ScalarKernel : public Kernel {
  public:
    explicit ScalarKernel(const ConvCall& call) : v_(call.view), context_(call.context), x_(call.x), w_(call.w), y_(call.y) {}

    void run(const StepContext&) override {
        switch (v_.direction()) {
            case Direction::Forward: return planes(v_.f, [&](int64_t n, int64_t f) { forward(n, f); });
            case Direction::GradInput: return planes(v_.c, [&](int64_t n, int64_t c) { grad_input(n, c); });
            default: return weights();
        }
    }

  private:
    // Calls fn(sample, channel) for every plane of a result, on threads.
    template <class Fn>
    void planes(int64_t channels, const Fn& fn) const {
        in_parts(std::max(1, context_.threads), v_.n * channels, [&](int, int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) fn(i / channels, i % channels);
        });
    }

    // fn(tap, first output, first input, count)
    template <class Fn>
    void runs(const Fn& fn) const {
        if constexpr (kColumns)
            column_wise(v_, fn);
        else
            row_wise(v_, fn);
    }

    float* x_plane(int64_t n, int64_t c) const { return x_ + (n * v_.c + c) * v_.in_points(); }
    float* y_plane(int64_t n, int64_t f) const { return y_ + (n * v_.f + f) * v_.out_points(); }
    float* taps(int64_t f, int64_t c) const { return w_ + (f * v_.channels() + c) * v_.taps(); }

    void forward(int64_t n, int64_t f) const {
        const auto scale_add = vector_kernels().scale_add;
        float* const y = y_plane(n, f);
        std::fill_n(y, v_.out_points(), 0.0f);
        for (int64_t c = 0; c < v_.channels(); ++c) {
            const float *const x = x_plane(n, f / v_.filters() * v_.channels() + c), *const w = taps(f, c);
            runs([&](int64_t tap, int64_t out, int64_t in, int64_t count) {
                scale_add({.x = x + in, .y = y + out, .x_step = v_.stride[2], .y_step = 1, .lines = count, .lanes = 1, .factor = w[tap]});
            });
        }
    }

    void grad_input(int64_t n, int64_t c) const {
        const auto scale_add = vector_kernels().scale_add;
        float* const x = x_plane(n, c);
        std::fill_n(x, v_.in_points(), 0.0f);
        for (int64_t i = 0; i < v_.filters(); ++i) {
            const int64_t f = c / v_.channels() * v_.filters() + i;
            const float *const y = y_plane(n, f), *const w = taps(f, c % v_.channels());
            runs([&](int64_t tap, int64_t out, int64_t in, int64_t count) {
                scale_add({.x = y + out, .y = x + in, .x_step = 1, .y_step = v_.stride[2], .lines = count, .lanes = 1, .factor = w[tap]});
            });
        }
    }

    void weights() const {
        const auto dot = vector_kernels().dot;
        in_parts(std::max(1, context_.threads), v_.f * v_.channels(), [&](int, int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                const int64_t f = i / v_.channels(), c = i % v_.channels();
                float* const w = taps(f, c);
                std::fill_n(w, v_.taps(), 0.0f);
                for (int64_t n = 0; n < v_.n; ++n) {
                    const float *const y = y_plane(n, f), *const x = x_plane(n, f / v_.filters() * v_.channels() + c);
                    runs([&](int64_t tap, int64_t out, int64_t in, int64_t count) { w[tap] += dot(y + out, x + in, v_.stride[2], count); });
                }
            }
        });
    }

    ConvView v_;
    CpuContext context_;
    float *x_, *w_, *y_;
};

template <bool kColumns>
std::unique_ptr<Kernel> prepare(const ConvCall& call) {
    return std::make_unique<ScalarKernel<kColumns>>(call);
}

}  // namespace

const ConvAlgorithm& scalar_row() {
    static const ConvAlgorithm algorithm{"scalar-row", Numerics::Exact, false, offers<false>, prepare<false>};
    return algorithm;
}

const ConvAlgorithm& scalar_column() {
    static const ConvAlgorithm algorithm{"scalar-column", Numerics::Exact, false, offers<true>, prepare<true>};
    return algorithm;
}

}  // namespace convoy::cpu
