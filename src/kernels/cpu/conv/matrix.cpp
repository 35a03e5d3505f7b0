// Windows of one element without padding: the convolution is a plain matrix product over channels, per sample in plain layout, over all samples at once
// in channels-last. A stride is gathered first, or scattered afterwards.
#include "kernels/cpu/conv/algorithm.h"
#include "kernels/cpu/conv/patches.h"
#include "kernels/cpu/onednn/gemm.h"
#include "kernels/cpu/own.h"

namespace convoy::cpu {

namespace {

bool dense(const ConvView& v) { return v.in == v.out; }

int64_t scratch_floats(const ConvView& v) { return dense(v) ? 0 : v.channels() * v.out_points(); }

ConvOffers offers(const ConvView& v, const CpuContext& context) {
    if (v.taps() != 1) return ConvOffers::refuse("the window has more than one element");
    for (size_t i = 0; i < 3; ++i)
        if (v.outputs(i, 0).size() != v.out[i] || v.pad[i] != 0) return ConvOffers::refuse("the input is padded or cropped");
    ConvOffers result;
    for (const bool last : {false, true}) {
        const Layout layout = last ? Layout::channels_last(v.rank + 2) : Layout::plain();
        result.list.push_back({.variant = last ? "last" : "plain",
                               .x = layout,
                               .w = Layout::plain(),
                               .y = layout,
                               .workspace_bytes = scratch_floats(v) * 4,
                               .operations = v.operations(),
                               .seconds = seconds_of({.operations = v.operations(),
                                                      .bytes = 8.0 * static_cast<double>(v.n * v.groups * scratch_floats(v)),
                                                      .m = v.filters(),
                                                      .n = v.out_points() * (last && dense(v) ? v.n : 1),
                                                      .k = v.channels()},
                                                     context)});
    }
    return result;
}

template <bool kLast>
class MatrixKernel : public Kernel {
  public:
    explicit MatrixKernel(const ConvCall& call)
        : v_(call.view), context_(call.context), x_(call.x), w_(call.w), y_(call.y), scratch_(static_cast<float*>(call.workspace)) {}

    void run(const StepContext&) override {
        const bool grad_input = v_.direction() == Direction::GradInput;
        if (grad_input && !dense(v_)) clear(x_, v_.n * v_.c * v_.in_points(), context_);
        const bool joined = kLast && dense(v_);
        const int64_t samples = joined ? 1 : v_.n, points = v_.out_points() * (joined ? v_.n : 1);
        for (int64_t n = 0; n < samples; ++n)
            for (int64_t g = 0; g < v_.groups; ++g) {
                const Planes x = planes_of(x_, v_, kLast, v_.channels(), v_.in_points(), n, g);
                const Planes y = planes_of(y_, v_, kLast, v_.filters(), v_.out_points(), n, g);
                Planes of = x;
                if (!dense(v_)) {
                    of = kLast ? Planes{scratch_, 1, 0, v_.channels(), v_.channels()}
                               : Planes{scratch_, v_.channels(), v_.out_points(), 1, 1};
                    if (!grad_input) gather_tap(v_, 0, x, of, context_);
                }
                product(of, w_ + g * v_.filters() * v_.channels(), y, points, n > 0).run();
                if (grad_input && !dense(v_)) add_to_inputs(v_, 0, of, x, context_);
            }
    }

  private:
    Gemm product(const Planes& x, float* w, const Planes& y, int64_t p, bool add) const {
        const int64_t c = v_.channels(), f = v_.filters();
        if constexpr (kLast) {
            switch (v_.direction()) {
                case Direction::Forward: return {p, f, c, {x.data, x.line_step}, {w, c, true}, y.data, y.line_step};
                case Direction::GradInput: return {p, c, f, {y.data, y.line_step}, {w, c}, x.data, x.line_step};
                default: return {f, c, p, {y.data, y.line_step, true}, {x.data, x.line_step}, w, c, add};
            }
        } else {
            switch (v_.direction()) {
                case Direction::Forward: return {f, p, c, {w, c}, {x.data, x.plane_step}, y.data, y.plane_step};
                case Direction::GradInput: return {c, p, f, {w, c, true}, {y.data, y.plane_step}, x.data, x.plane_step};
                default: return {f, c, p, {y.data, y.plane_step}, {x.data, x.plane_step, true}, w, c, add};
            }
        }
    }

    ConvView v_;
    CpuContext context_;
    float *x_, *w_, *y_, *scratch_;
};

std::unique_ptr<Kernel> prepare(const ConvCall& call) {
    if (call.variant == "last") return std::make_unique<MatrixKernel<true>>(call);
    return std::make_unique<MatrixKernel<false>>(call);
}

}  // namespace

const ConvAlgorithm& matrix() {
    static const ConvAlgorithm algorithm{"matrix", Numerics::Exact, false, offers, prepare};
    return algorithm;
}

}  // namespace convoy::cpu
