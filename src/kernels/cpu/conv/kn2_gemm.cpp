// kn2row whose matrix products add straight into the result, so that only lines of an image are kept besides it.
//
// Where inputs and outputs have rows of one length and the stride is 1, a tap is a shift of the whole image, and one product adds all rows at once;
// but what a shift moves over the end of a row comes in at the other side. The columns of the result that this spoils are saved before a product and
// put back after it. Everywhere else, and for the weight gradient, products go row by row; a stride is gathered into a line, or scattered from one.
#include <algorithm>
#include <cstdlib>

#include "kernels/cpu/conv/algorithm.h"
#include "kernels/cpu/conv/patches.h"
#include "kernels/cpu/onednn/gemm.h"
#include "kernels/cpu/own.h"

namespace convoy::cpu {

namespace {

// Whole images are shifted in slabs of so many rows at most, which bounds what is saved.
constexpr int64_t kRowsPerWidth = 4;

bool by_image(const ConvView& v) {
    return v.direction() != Direction::GradWeight && v.stride[2] == 1 && v.stride[1] == 1 && v.in[2] == v.out[2];
}

int64_t slab_rows(const ConvView& v) { return std::max<int64_t>(1, std::min(v.out[1], kRowsPerWidth * v.out[2])); }

// Columns that the widest shift along rows spoils.
int64_t spoiled(const ConvView& v) {
    int64_t most = 0;
    for (int64_t k = 0; k < v.kernel[2]; ++k) most = std::max(most, std::abs(v.at(2, 0, k)));
    return std::min(most, v.out[2]);
}

int64_t scratch_floats(const ConvView& v) {
    if (by_image(v)) return (v.direction() == Direction::Forward ? v.filters() : v.channels()) * slab_rows(v) * spoiled(v);
    return v.stride[2] > 1 ? v.channels() * v.out[2] : 0;
}

ConvOffers offers(const ConvView& v, const CpuContext& context) {
    const int64_t line = by_image(v) ? slab_rows(v) * v.out[2] : v.out[2];
    const double lines = static_cast<double>(v.n * v.taps() * v.out[0] * v.out[1]) / (by_image(v) ? static_cast<double>(slab_rows(v)) : 1);
    return {.list = {{.variant = "plain",
                      .x = Layout::plain(),
                      .w = tap_major(v.rank),
                      .y = Layout::plain(),
                      .workspace_bytes = scratch_floats(v) * 4,
                      .operations = v.operations(),
                      .seconds = seconds_of({.operations = v.operations(), .m = v.filters(), .n = line, .k = v.channels(), .slowness = 1.3},
                                            context) +
                                 lines * static_cast<double>(v.groups) * 2e-6}},
            .refusal = {}};
}

// Columns [begin, end) of `rows` rows, of several planes.
struct Columns {
    float* data;
    int64_t planes, plane_step, rows, width, begin, end;

    template <class Fn>
    void each(const Fn& fn) const {
        const int64_t count = end - begin;
        for (int64_t p = 0; p < planes; ++p)
            for (int64_t r = 0; r < rows; ++r) fn(data + p * plane_step + r * width + begin, (p * rows + r) * count, count);
    }
    void save(float* to) const {
        each([&](const float* at, int64_t place, int64_t count) { std::copy_n(at, count, to + place); });
    }
    void restore(const float* from) const {
        each([&](float* at, int64_t place, int64_t count) { std::copy_n(from + place, count, at); });
    }
};

class AccumulatingKernel : public Kernel {
  public:
    explicit AccumulatingKernel(const ConvCall& call)
        : v_(call.view), context_(call.context), x_(call.x), w_(call.w), y_(call.y), scratch_(static_cast<float*>(call.workspace)) {}

    void run(const StepContext&) override {
        if (v_.direction() == Direction::Forward) clear(y_, v_.n * v_.f * v_.out_points(), context_);
        if (v_.direction() == Direction::GradInput) clear(x_, v_.n * v_.c * v_.in_points(), context_);
        if (v_.direction() == Direction::GradWeight) clear(w_, v_.f * v_.channels() * v_.taps(), context_);
        for (int64_t n = 0; n < v_.n; ++n)
            for (int64_t g = 0; g < v_.groups; ++g)
                for (int64_t tap = 0; tap < v_.taps(); ++tap) {
                    const Place place{x_ + (n * v_.c + g * v_.channels()) * v_.in_points(),
                                      w_ + (tap * v_.f + g * v_.filters()) * v_.channels(),
                                      y_ + (n * v_.f + g * v_.filters()) * v_.out_points()};
                    if (by_image(v_))
                        add_image(place, v_.tap(tap));
                    else
                        for_tap_rows(v_, tap, [&](int64_t out, int64_t in, int64_t count) { add_row(place, out, in, count); });
                }
    }

  private:
    struct Place {
        float *x, *w, *y;
    };

    // Result row r and column c get what stands in row r + down and column c + right of the source.
    struct Shift {
        float* result;
        const float* source;
        Factor weights;
        int64_t planes, sums;                     // of result and source
        int64_t result_step, source_step;         // between planes
        int64_t result_rows, source_rows, width;  // of a slice
        int64_t down, right;
    };

    void add_image(const Place& at, const Three& k) const {
        const Range depths = v_.outputs(0, k[0]);
        const bool forward = v_.direction() == Direction::Forward;
        const int64_t out_slice = v_.out[1] * v_.out[2], in_slice = v_.in[1] * v_.in[2];
        for (int64_t od = depths.begin; od < depths.end; ++od) {
            float *const x = at.x + v_.at(0, od, k[0]) * in_slice, *const y = at.y + od * out_slice;
            const int64_t down = v_.at(1, 0, k[1]), right = v_.at(2, 0, k[2]);
            if (forward)
                add_slice({y,
                           x,
                           {at.w, v_.channels()},
                           v_.filters(),
                           v_.channels(),
                           v_.out_points(),
                           v_.in_points(),
                           v_.out[1],
                           v_.in[1],
                           v_.out[2],
                           down,
                           right});
            else
                add_slice({x,
                           y,
                           {at.w, v_.channels(), true},
                           v_.channels(),
                           v_.filters(),
                           v_.in_points(),
                           v_.out_points(),
                           v_.in[1],
                           v_.out[1],
                           v_.out[2],
                           -down,
                           -right});
        }
    }

    void add_slice(const Shift& s) const {
        if (std::abs(s.right) >= s.width) return;
        const int64_t top = std::max<int64_t>(0, -s.down), bottom = std::min(s.result_rows, s.source_rows - s.down);
        const int64_t shift = s.down * s.width + s.right;
        for (int64_t first = top; first < bottom; first += slab_rows(v_)) {
            const int64_t last = std::min(first + slab_rows(v_), bottom);
            const Columns spoiled{
                s.result + first * s.width,      s.planes, s.result_step, last - first, s.width, s.right > 0 ? s.width - s.right : 0,
                s.right > 0 ? s.width : -s.right};
            const int64_t begin = std::max(first * s.width, -shift), end = std::min(last * s.width, s.source_rows * s.width - shift);
            spoiled.save(scratch_);
            Gemm{.m = s.planes,
                 .n = end - begin,
                 .k = s.sums,
                 .a = s.weights,
                 .b = {s.source + begin + shift, s.source_step},
                 .c = s.result + begin,
                 .c_step = s.result_step,
                 .add = true}
                .run();
            spoiled.restore(scratch_);
        }
    }

    void add_row(const Place& at, int64_t out, int64_t in, int64_t count) const {
        const int64_t c = v_.channels(), f = v_.filters(), p = v_.out_points(), q = v_.in_points(), stride = v_.stride[2];
        const bool direct = stride == 1;
        float *const y = at.y + out, *const line = direct ? at.x + in : scratch_;
        const int64_t step = direct ? q : count;
        if (!direct && v_.direction() != Direction::GradInput)
            for (int64_t i = 0; i < c; ++i)
                for (int64_t j = 0; j < count; ++j) scratch_[i * count + j] = at.x[i * q + in + j * stride];
        switch (v_.direction()) {
            case Direction::Forward: return Gemm{f, count, c, {at.w, c}, {line, step}, y, p, true}.run();
            case Direction::GradWeight: return Gemm{f, c, count, {y, p}, {line, step, true}, at.w, c, true}.run();
            default: Gemm{c, count, f, {at.w, c, true}, {y, p}, line, step, direct}.run();
        }
        if (direct) return;
        for (int64_t i = 0; i < c; ++i)
            for (int64_t j = 0; j < count; ++j) at.x[i * q + in + j * stride] += scratch_[i * count + j];
    }

    ConvView v_;
    CpuContext context_;
    float *x_, *w_, *y_, *scratch_;
};

std::unique_ptr<Kernel> prepare(const ConvCall& call) { return std::make_unique<AccumulatingKernel>(call); }

}  // namespace

const ConvAlgorithm& kn2row_gemm() {
    static const ConvAlgorithm algorithm{"kn2row-gemm", Numerics::Exact, false, offers, prepare};
    return algorithm;
}

}  // namespace convoy::cpu
