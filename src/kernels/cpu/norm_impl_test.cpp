#include "kernels/cpu/own_testing.h"

namespace convoy::cpu {
namespace {

using namespace testing;

class OwnNorm : public ::testing::Test {
  protected:
    // x with another mean and spread in every channel, the statistics of that, and gamma and beta.
    void draw(const std::string& name, int number) {
        Draw d(name, number);
        kernels = &some_kernels(number);
        implementation = make_norm_implementation(*kernels);
        shape = draw_activation(d, number);
        channels = shape[1];
        const int64_t inner = product(shape, 2, shape.size());
        const Tensor mean = d.normal({channels}), spread = d.normal({channels});
        x = d.normal(shape);
        fill(x, [&](int64_t i) {
            return element(x, i) * (0.2 + std::abs(element(spread, i / inner % channels))) + 3 * element(mean, i / inner % channels);
        });
        dy = d.normal(shape);
        other = d.normal(shape);
        gamma = d.normal({channels});
        beta = d.normal({channels});
        stats = reference_outputs(problem_of(BatchStatsOp{}, {shape}, {{2, channels}}), {x}, {})[0];
    }
    static Problem problem_of(const Op& op, const std::vector<Shape>& inputs, const std::vector<Shape>& outputs) {
        std::vector<TensorDesc> in, out;
        for (const auto& s : inputs) in.push_back(TensorDesc::whole(s, DType::f32));
        for (const auto& s : outputs) out.push_back(TensorDesc::whole(s, DType::f32));
        return Problem::single(op, in, out, DType::f32);
    }
    // The sign of the normalised x decides whether dy counts; where rounding could change it, dy is zero.
    void hide_doubtful() {
        const Tensor z = reference_outputs(problem_of(BatchNormalizeOp{}, {shape, {2, channels}, {channels}, {channels}}, {shape}),
                                           {x, stats, gamma, beta}, {})[0];
        fill(dy, [&](int64_t i) { return std::abs(element(z, i)) < 1e-4 ? 0 : element(dy, i); });
    }

    const vec::VectorKernels* kernels;
    std::unique_ptr<Implementation> implementation;
    Shape shape;
    int64_t channels;
    Tensor x, dy, other, gamma, beta, stats;
};

TEST_F(OwnNorm, Statistics) {
    for (int i = 0; i < test_count(40, 500); ++i) {
        draw("stats", i);
        expect_agreement(*implementation, problem_of(BatchStatsOp{}, {shape}, {{2, channels}}), {x}, {.number = i});
    }
}

TEST_F(OwnNorm, StatisticsFarFromZero) {
    draw("far", 3);
    const Problem problem = problem_of(BatchStatsOp{}, {shape}, {{2, channels}});
    fill(x, [&](int64_t i) { return 300 + element(other, i); });
    const auto expected = reference_outputs(problem, {x}, {})[0];
    for (const auto& candidate : implementation->candidates(problem, {})) {
        const auto found = CandidateRun(*implementation, problem, candidate, {}, {x})({})[0];
        for (int64_t c = channels; c < 2 * channels; ++c) EXPECT_NEAR(element(found, c) / element(expected, c), 1, 1e-5);
    }
}

TEST_F(OwnNorm, NormalizeAlsoWithAddAndRelu) {
    for (int i = 0; i < test_count(40, 500); ++i) {
        draw("normalize", i);
        const int variant = i % 6;
        const bool add = variant >= 2, relu = variant == 1 || variant >= 4, swapped = variant % 2 == 1;
        ProblemBuilder b;
        const int tx = b.input(shape), ts = b.input({2, channels}), tg = b.input({channels}), tb = b.input({channels});
        std::vector<Tensor> inputs{x, stats, gamma, beta};
        int to = 0;
        if (add) {
            to = b.input(shape);
            inputs.push_back(other);
        }
        const int ty = b.output(shape);
        int z = add || relu ? b.inside(shape) : ty;
        b.step(BatchNormalizeOp{}, {tx, ts, tg, tb}, {z});
        if (add) {
            const int sum = relu ? b.inside(shape) : ty;
            b.step(AddOp{}, swapped ? std::vector<int>{to, z} : std::vector<int>{z, to}, {sum});
            z = sum;
        }
        if (relu) b.step(UnaryOp{}, {z}, {ty});
        expect_agreement(*implementation, b.problem, inputs, {.number = i});
    }
}

TEST_F(OwnNorm, GradientSums) {
    for (int i = 0; i < test_count(40, 500); ++i) {
        draw("sums", i);
        expect_agreement(*implementation, problem_of(BatchNormGradSumsOp{}, {shape, shape, {2, channels}}, {{channels}, {channels}}),
                         {x, dy, stats}, {.tolerance = 1e-5, .number = i});
    }
}

TEST_F(OwnNorm, GradientSumsBehindARelu) {
    for (int i = 0; i < test_count(40, 500); ++i) {
        draw("masked sums", i);
        ProblemBuilder b;
        if (i % 2 == 0) {
            const int ty = b.input(shape), tdy = b.input(shape), tx = b.input(shape), ts = b.input({2, channels});
            const int d = b.output(shape), dgamma = b.output({channels}), dbeta = b.output({channels});
            b.step(UnaryGradOp{}, {ty, tdy}, {d}).step(BatchNormGradSumsOp{}, {tx, d, ts}, {dgamma, dbeta});
            expect_agreement(*implementation, b.problem, {other, dy, x, stats}, {.tolerance = 1e-5, .number = i});
        } else {
            hide_doubtful();
            const int tx = b.input(shape), ts = b.input({2, channels}), tg = b.input({channels}), tb = b.input({channels}),
                      tdy = b.input(shape);
            const int dgamma = b.output({channels}), dbeta = b.output({channels});
            const int z = b.inside(shape), d = b.inside(shape);
            b.step(BatchNormalizeOp{}, {tx, ts, tg, tb}, {z})
                .step(UnaryGradOp{}, {z, tdy}, {d})
                .step(BatchNormGradSumsOp{}, {tx, d, ts}, {dgamma, dbeta});
            expect_agreement(*implementation, b.problem, {x, stats, gamma, beta, dy}, {.tolerance = 1e-5, .number = i});
        }
    }
}

TEST_F(OwnNorm, GradientOfTheInput) {
    for (int i = 0; i < test_count(40, 500); ++i) {
        // With few elements per statistic the gradient is nothing but rounding.
        for (int attempt = 0; attempt == 0 || numel(shape) / channels < 8; ++attempt) draw(fmt::format("grad input {}", attempt), i);
        const auto sums = reference_outputs(problem_of(BatchNormGradSumsOp{}, {shape, shape, {2, channels}}, {{channels}, {channels}}),
                                            {x, dy, stats}, {});
        const BatchNormGradInputOp op{.count = numel(shape) / channels};
        ProblemBuilder b;
        if (i % 2 == 0) {
            const int tx = b.input(shape), tdy = b.input(shape), ts = b.input({2, channels}), tg = b.input({channels});
            const int dgamma = b.input({channels}), dbeta = b.input({channels}), dx = b.output(shape);
            b.step(op, {tx, tdy, ts, tg, dgamma, dbeta}, {dx});
            expect_agreement(*implementation, b.problem, {x, dy, stats, gamma, sums[0], sums[1]}, {.tolerance = 1e-5, .number = i});
        } else {
            hide_doubtful();
            const int tx = b.input(shape), ts = b.input({2, channels}), tg = b.input({channels}), tb = b.input({channels}),
                      tdy = b.input(shape);
            const int dgamma = b.input({channels}), dbeta = b.input({channels}), dx = b.output(shape);
            const int z = b.inside(shape), d = b.inside(shape);
            b.step(BatchNormalizeOp{}, {tx, ts, tg, tb}, {z})
                .step(UnaryGradOp{}, {z, tdy}, {d})
                .step(op, {tx, d, ts, tg, dgamma, dbeta}, {dx});
            expect_agreement(*implementation, b.problem, {x, stats, gamma, beta, dy, sums[0], sums[1]}, {.tolerance = 1e-5, .number = i});
        }
    }
}

TEST_F(OwnNorm, RefusesWhatItDoesNotKnow) {
    draw("refusals", 0);
    const CpuContext context;
    // Another type.
    Problem wide = problem_of(BatchStatsOp{}, {shape}, {{2, channels}});
    for (auto& t : wide.tensors) t.dtype = DType::f64;
    wide.compute = DType::f64;
    EXPECT_TRUE(implementation->candidates(wide, context).empty());
    // An inner result that somebody else reads too.
    ProblemBuilder b;
    const int tx = b.input(shape), ts = b.input({2, channels}), tg = b.input({channels}), tb = b.input({channels});
    const int z = b.output(shape), y = b.output(shape);
    b.step(BatchNormalizeOp{}, {tx, ts, tg, tb}, {z}).step(UnaryOp{}, {z}, {y});
    EXPECT_TRUE(implementation->candidates(b.problem, context).empty());
    // Another activation.
    ProblemBuilder c;
    const int cx = c.input(shape), cs = c.input({2, channels}), cg = c.input({channels}), cb = c.input({channels});
    const int cy = c.output(shape), cz = c.inside(shape);
    c.step(BatchNormalizeOp{}, {cx, cs, cg, cb}, {cz}).step(UnaryOp{Unary::Tanh}, {cz}, {cy});
    EXPECT_TRUE(implementation->candidates(c.problem, context).empty());
}

}  // namespace
}  // namespace convoy::cpu
