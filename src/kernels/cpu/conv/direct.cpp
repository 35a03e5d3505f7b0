// Direct convolution in the blocked layout: sums in registers, every result written once. Takes any stride, dilation and padding; of groups only those
// that are whole blocks of channels.
#include "kernels/cpu/conv/algorithm.h"
#include "kernels/cpu/own.h"

namespace convoy::cpu {

namespace {

constexpr int64_t kMostTaps = 512;

int64_t blocks(int64_t channels, int64_t block) { return (channels + block - 1) / block; }

ConvOffers offers(const ConvView& v, const CpuContext& context) {
    const int64_t b = context.block;
    if (v.taps() > kMostTaps) return ConvOffers::refuse(fmt::format("the window has more than {} elements", kMostTaps));
    if (v.groups > 1 && (v.channels() % b != 0 || v.filters() % b != 0))
        return ConvOffers::refuse(fmt::format("the channels of a group are no multiple of {}", b));
    const Layout layout = Layout::blocked(v.rank + 2, b);
    const double padded =
        static_cast<double>(blocks(v.channels(), b) * blocks(v.filters(), b) * b * b) / static_cast<double>(v.channels() * v.filters());
    const double operations = v.operations() * v.used_part() * padded;
    return {.list = {{.variant = "blocked",
                      .x = layout,
                      .w = blocked_weights(v, b),
                      .y = layout,
                      .workspace_bytes = 0,
                      .operations = operations,
                      .seconds = seconds_of({.operations = operations, .m = 256, .n = v.out[2] * 4, .k = 256}, context)}},
            .refusal = {}};
}

// A window of one element sees all points alike: they are one row.
ConvView in_rows(ConvView v) {
    if (v.taps() == 1 && v.in == v.out && v.all_ones(v.stride) && v.pad == Three{0, 0, 0}) v.in = v.out = {1, 1, v.in_points()};
    return v;
}

// A tap and the element of the source that it sees.
struct Seen {
    int64_t tap, index;
};

// Results along the last dim that see the same taps: first, first + step, ..; what the first one sees.
struct Segment {
    int64_t first, step, count, source_step;
    std::vector<Seen> taps;
};

// How results see sources along one dim.
class Sight {
  public:
    Sight(const ConvView& v, size_t dim) : v_(v), dim_(dim), back_(v.direction() == Direction::GradInput) {}

    int64_t results() const { return back_ ? v_.in[dim_] : v_.out[dim_]; }
    int64_t sources() const { return back_ ? v_.out[dim_] : v_.in[dim_]; }

    std::vector<Seen> taps_of(int64_t result) const {
        std::vector<Seen> list;
        for (int64_t k = 0; k < v_.kernel[dim_]; ++k) {
            int64_t index = v_.at(dim_, result, k);
            if (back_) {
                index = result + v_.pad[dim_] - k * v_.dilation[dim_];
                if (index % v_.stride[dim_] != 0) continue;
                index /= v_.stride[dim_];
            }
            if (index >= 0 && index < sources()) list.push_back({k, index});
        }
        return list;
    }

    // Neighbours of one phase that see the same taps are joined.
    std::vector<Segment> segments() const {
        const int64_t phases = back_ ? v_.stride[dim_] : 1, source_step = back_ ? 1 : v_.stride[dim_];
        std::vector<Segment> list;
        for (int64_t phase = 0; phase < phases; ++phase) {
            bool fresh = true;
            for (int64_t r = phase; r < results(); r += phases, fresh = false) {
                auto taps = taps_of(r);
                if (!fresh && same(list.back().taps, taps))
                    ++list.back().count;
                else
                    list.push_back({r, phases, 1, source_step, std::move(taps)});
            }
        }
        return list;
    }

  private:
    static bool same(const std::vector<Seen>& a, const std::vector<Seen>& b) {
        return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Seen& p, const Seen& q) { return p.tap == q.tap; });
    }

    const ConvView& v_;
    size_t dim_;
    bool back_;
};

// Forward and input gradient.
class DirectKernel : public Kernel {
  public:
    explicit DirectKernel(const ConvCall& call)
        : v_(in_rows(call.view)), context_(call.context), w_(call.w), back_(v_.direction() == Direction::GradInput) {
        source_ = back_ ? call.y : call.x;
        result_ = back_ ? call.x : call.y;
        for (size_t d = 0; d < 2; ++d)
            for (int64_t r = 0; r < Sight(v_, d).results(); ++r) rows_[d].push_back(Sight(v_, d).taps_of(r));
        segments_ = Sight(v_, 2).segments();
    }

    void run(const StepContext&) override {
        const int64_t b = context_.block, results = back_ ? v_.c : v_.f;
        const int64_t per_group = blocks(results / v_.groups, b), pairs = (per_group + 1) / 2;
        const int64_t lines = static_cast<int64_t>(rows_[0].size() * rows_[1].size());
        in_parts(std::max(1, context_.threads), v_.n * v_.groups * pairs * lines, [&](int, int64_t begin, int64_t end) {
            for (int64_t unit = begin; unit < end; ++unit) {
                const int64_t line = unit % lines, pair = unit / lines % pairs, g = unit / lines / pairs % v_.groups;
                row(unit / lines / pairs / v_.groups, g, pair * 2, static_cast<int>(std::min<int64_t>(2, per_group - pair * 2)), line);
            }
        });
    }

  private:
    // One row of results, of one or two blocks from block `first` of a group on.
    void row(int64_t n, int64_t g, int64_t first, int count, int64_t line) const {
        const int64_t b = context_.block, square = b * b * v_.taps();
        const int64_t results = blocks((back_ ? v_.c : v_.f) / v_.groups, b), sources = blocks((back_ ? v_.f : v_.c) / v_.groups, b);
        const Three &to = back_ ? v_.in : v_.out, &from = back_ ? v_.out : v_.in;
        const int64_t to_points = volume(to), from_points = volume(from), cs = back_ ? results : sources;
        const int64_t r0 = line / to[1], r1 = line % to[1];
        int64_t source_offset[kMostTaps], weight_offset[kMostTaps];
        vec::DirectArgs args{.lanes = b,
                             .source = source_ + (n * v_.groups + g) * sources * from_points * b,
                             .weights = w_ + (back_ ? g * sources * results + first : (g * results + first) * sources) * square,
                             .results = count,
                             .result_block = to_points * b,
                             .result_weights = (back_ ? 1 : cs) * square,
                             .blocks = sources,
                             .source_block = from_points * b,
                             .source_weights = (back_ ? cs : 1) * square,
                             .source_offset = source_offset,
                             .weight_offset = weight_offset};
        float* const result = result_ + ((n * v_.groups + g) * results + first) * to_points * b + line * to[2] * b;
        for (const Segment& s : segments_) {
            args.taps = 0;
            for (const Seen& d : rows_[0][static_cast<size_t>(r0)])
                for (const Seen& h : rows_[1][static_cast<size_t>(r1)])
                    for (const Seen& w : s.taps) {
                        source_offset[args.taps] = ((d.index * from[1] + h.index) * from[2] + w.index) * b;
                        weight_offset[args.taps++] = ((d.tap * v_.kernel[1] + h.tap) * v_.kernel[2] + w.tap) * b * b;
                    }
            args.result = result + s.first * b;
            args.count = s.count;
            args.result_step = s.step * b;
            args.source_step = s.source_step * b;
            vector_kernels().direct(args);
        }
    }

    ConvView v_;
    CpuContext context_;
    const float *source_, *w_;
    float* result_;
    bool back_;
    std::vector<std::vector<Seen>> rows_[2];
    std::vector<Segment> segments_;
};

class DirectWeightKernel : public Kernel {
  public:
    explicit DirectWeightKernel(const ConvCall& call)
        : v_(in_rows(call.view)), context_(call.context), x_(call.x), y_(call.y), w_(call.w) {}

    void run(const StepContext&) override {
        const int64_t b = context_.block, cs = blocks(v_.channels(), b), fs = blocks(v_.filters(), b) * v_.groups;
        in_parts(std::max(1, context_.threads), fs * cs * v_.taps(), [&](int, int64_t begin, int64_t end) {
            for (int64_t unit = begin; unit < end; ++unit) square(unit / v_.taps() / cs, unit / v_.taps() % cs, unit % v_.taps());
        });
    }

  private:
    // The weights between two blocks of channels, of one tap.
    void square(int64_t fb, int64_t cb, int64_t tap) const {
        const int64_t b = context_.block, cs = blocks(v_.channels(), b), fs = blocks(v_.filters(), b);
        const Three k = v_.tap(tap);
        const Range d = v_.outputs(0, k[0]), h = v_.outputs(1, k[1]), w = v_.outputs(2, k[2]);
        vec::DirectWeightArgs args{.lanes = b,
                                   .weights = w_ + ((fb * cs + cb) * v_.taps() + tap) * b * b,
                                   .rows = h.size(),
                                   .count = w.size(),
                                   .x_row = v_.stride[1] * v_.in[2] * b,
                                   .x_step = v_.stride[2] * b,
                                   .dy_row = v_.out[2] * b};
        std::fill_n(args.weights, b * b, 0.0f);
        if (args.rows == 0 || args.count == 0) return;
        for (int64_t n = 0; n < v_.n; ++n)
            for (int64_t od = d.begin; od < d.end; ++od) {
                const int64_t in = (v_.at(0, od, k[0]) * v_.in[1] + v_.at(1, h.begin, k[1])) * v_.in[2] + v_.at(2, w.begin, k[2]);
                const int64_t out = (od * v_.out[1] + h.begin) * v_.out[2] + w.begin;
                args.x = x_ + ((n * v_.groups + fb / fs) * cs + cb) * v_.in_points() * b + in * b;
                args.dy = y_ + (n * v_.groups * fs + fb) * v_.out_points() * b + out * b;
                vector_kernels().direct_weight(args);
            }
    }

    ConvView v_;
    CpuContext context_;
    const float *x_, *y_;
    float* w_;
};

std::unique_ptr<Kernel> prepare(const ConvCall& call) {
    if (call.view.direction() == Direction::GradWeight) return std::make_unique<DirectWeightKernel>(call);
    return std::make_unique<DirectKernel>(call);
}

}  // namespace

const ConvAlgorithm& direct() {
    static const ConvAlgorithm algorithm{"direct", Numerics::Exact, false, offers, prepare};
    return algorithm;
}

}  // namespace convoy::cpu
