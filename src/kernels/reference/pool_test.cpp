#include "kernels/reference/pool.h"

#include <cmath>
#include <limits>

#include "kernels/reference/test_support.h"

namespace convoy::ref {
namespace {

using namespace testing;

struct Pooled {
    Tensor y, where;
};

Pooled max_pool(const Window& window, const Tensor& x, int threads = 1) {
    const Shape y = join(x.shape().slice(0, 2), window.output(x.shape().slice(2)));
    const DType where = infer(MaxPoolOp{window}, {{x.shape(), Element::Real}})[1].element == Element::Byte ? DType::u8 : DType::i32;
    auto out = run_op(MaxPoolOp{window}, {x}, {TensorDesc::whole(y, x.dtype()), TensorDesc::whole(y, where)}, threads);
    return {std::move(out[0]), std::move(out[1])};
}

Window window1(int64_t kernel, int64_t stride, int64_t pad_lo, int64_t pad_hi) { return {{kernel}, {stride}, {1}, {pad_lo}, {pad_hi}}; }

TEST(MaxPool, KnownAnswer) {
    const Tensor x = doubles({1, 1, 4, 4}, {1, 5, 2, 2, 3, 4, 9, 2, -1, -2, -3, -4, -8, -7, -6, -5});
    const Window window{{2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}};
    const auto pooled = max_pool(window, x);
    expect_near(pooled.y, {5, 9, -1, -3});
    expect_near(pooled.where, {1, 2, 0, 0});
    expect_near(run_op1(MaxPoolGradOp{window, {4, 4}}, {doubles({1, 1, 2, 2}, {10, 20, 30, 40}), pooled.where}, {1, 1, 4, 4}),
                {0, 10, 0, 0, 0, 0, 20, 0, 30, 0, 40, 0, 0, 0, 0, 0});
}

TEST(MaxPool, PlacesInTheWholeInput) {
    const Tensor x = doubles({1, 2, 2, 4}, {1, 5, 2, 2, 3, 4, 9, 2, -1, -2, -3, -4, -8, -7, -6, -5});
    const Window window{{2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}};
    const auto places = [&](bool columns_first) {
        return run_op(MaxIndexOp{window, {2, 4}, columns_first}, {max_pool(window, x).where},
                      {TensorDesc::whole({1, 2, 1, 2}, DType::i32)})[0];
    };
    expect_near(places(false), {1, 6, 8, 10});
    expect_near(places(true), {2, 5, 8, 12});
}

TEST(MaxPool, OverlappingWindowsAddUp) {
    const Window window = window1(3, 1, 1, 1);
    const auto pooled = max_pool(window, doubles({1, 1, 4}, {0, 7, 1, 2}));
    expect_near(pooled.y, {7, 7, 7, 2});
    expect_near(pooled.where, {2, 1, 0, 1});
    expect_near(run_op1(MaxPoolGradOp{window, {4}}, {doubles({1, 1, 4}, {1, 2, 4, 8}), pooled.where}, {1, 1, 4}), {0, 7, 0, 8});
}

TEST(MaxPool, PaddingNeverWinsAndTheFirstOfEqualsDoes) {
    const auto pooled = max_pool(window1(3, 2, 1, 1), doubles({1, 1, 4}, {-5, -5, -9, -9}));
    expect_near(pooled.y, {-5, -5});
    expect_near(pooled.where, {1, 0});
}

TEST(MaxPool, NanIsSeen) {
    for (const auto& values : {std::vector<double>{std::nan(""), 1}, std::vector<double>{1, std::nan("")}})
        EXPECT_TRUE(std::isnan(element(max_pool(window1(2, 1, 0, 0), doubles({1, 1, 2}, values)).y, 0)));
}

// A window of more than 256 elements stores its positions as integers; one that holds only padding gets no gradient.
TEST(MaxPool, LargeWindowsAndEmptyOnes) {
    Draw draw("large window", 0);
    const Tensor x = draw.separated({1, 1, 400}, 1);
    const auto large = max_pool(window1(300, 100, 0, 0), x);
    EXPECT_EQ(large.where.dtype(), DType::i32);
    for (int64_t o = 0; o < 2; ++o) EXPECT_EQ(element(large.y, o), element(x, o * 100 + static_cast<int64_t>(element(large.where, o))));

    const Window past_the_end = window1(2, 2, 0, 3);
    const auto pooled = max_pool(past_the_end, doubles({1, 1, 2}, {1, 2}));
    EXPECT_EQ(element(pooled.y, 1), -std::numeric_limits<double>::infinity());
    expect_near(run_op1(MaxPoolGradOp{past_the_end, {2}}, {doubles({1, 1, 2}, {1, 1}), pooled.where}, {1, 1, 2}), {0, 1});
}

TEST(MaxPool, WhereHoldsTheMaximumOnRandomProblems) {
    for (int i = 0; i < test_count(100, 1000); ++i) {
        Draw draw("max pool", i);
        const WindowProblem p = draw_window(draw, {.pad_least = 0, .pad_most = 0});
        const Shape shape = join({2, 2}, p.in), out_shape = join({2, 2}, p.out);
        const Tensor x = draw.separated(shape, 0.01);
        const auto pooled = max_pool(p.window, x);
        // Every output is the largest of its window, so it is not below any element that its window covers, and it is one of them.
        const Dims in = row_major_strides(p.in), out = row_major_strides(p.out), kernel = row_major_strides(p.window.kernel);
        for (int64_t o = 0; o < pooled.y.numel(); ++o) {
            const int64_t plane = o / numel(p.out);
            double best = -1e9;
            int64_t at = -1;
            for (int64_t k = 0; k < numel(p.window.kernel); ++k) {
                int64_t offset = plane * numel(p.in);
                for (int d = 0; d < p.in.size(); ++d)
                    offset += in[d] * (o % numel(p.out) / out[d] % p.out[d] * p.window.stride[d] +
                                       k / kernel[d] % p.window.kernel[d] * p.window.dilation[d]);
                if (element(x, offset) > best) {
                    best = element(x, offset);
                    at = k;
                }
            }
            ASSERT_EQ(element(pooled.y, o), best);
            ASSERT_EQ(element(pooled.where, o), static_cast<double>(at));
        }
        const auto threaded = max_pool(p.window, x, 3);
        EXPECT_EQ(threaded.y, pooled.y);
        EXPECT_EQ(threaded.where, pooled.where);
        EXPECT_EQ(max_pool(p.window, x.to(DType::f32)).where, pooled.where);
        expect_agreement(MaxPoolGradOp{p.window, p.in}, {draw.normal(out_shape), pooled.where}, shape);
    }
}

// PyTorch: AvgPool1d(3, stride=2, padding=1, ceil_mode=True), which gives the last window one row past the padding.
TEST(AveragePool, KnownDivisors) {
    const Tensor x = doubles({1, 1, 6}, {1, 2, 3, 4, 5, 6}), dy = doubles({1, 1, 4}, {6, 6, 6, 6});
    const Window window = window1(3, 2, 1, 1);
    expect_near(run_op1(AveragePoolOp{window, true, {1}}, {x}, {1, 1, 4}), {1, 3, 5, 3});
    expect_near(run_op1(AveragePoolOp{window, false, {1}}, {x}, {1, 1, 4}), {1.5, 3, 5, 6});
    expect_near(run_op1(AveragePoolGradOp{window, true, {1}, {6}}, {dy}, {1, 1, 6}), {2, 4, 2, 4, 2, 5});
    expect_near(run_op1(AveragePoolGradOp{window, false, {1}, {6}}, {dy}, {1, 1, 6}), {3, 5, 2, 4, 2, 8});
}

TEST(AveragePool, TwoDimsMultiply) {
    const Tensor x = doubles({1, 1, 2, 2}, {1, 2, 3, 4});
    const Window window{{2, 2}, {1, 1}, {1, 1}, {1, 1}, {0, 0}};
    expect_near(run_op1(AveragePoolOp{window, true, {}}, {x}, {1, 1, 2, 2}), {0.25, 0.75, 1, 2.5});
    expect_near(run_op1(AveragePoolOp{window, false, {}}, {x}, {1, 1, 2, 2}), {1, 1.5, 2, 2.5});
}

// With all padding counted it is a depthwise convolution by a constant, forwards and backwards.
TEST(AveragePool, IsAConvolutionOnRandomProblems) {
    for (int i = 0; i < test_count(100, 1000); ++i) {
        Draw draw("average pool", i);
        const WindowProblem p = draw_window(draw, {.pad_least = 0});
        const int64_t channels = draw.between(1, 3), batch = draw.between(1, 3);
        const Shape shape = join({batch, channels}, p.in), out_shape = join({batch, channels}, p.out),
                    w_shape = join({channels, 1}, p.window.kernel);
        const Tensor x = draw.normal(shape), dy = draw.normal(out_shape);
        const Tensor w = Tensor::of<double>(
            w_shape, std::vector<double>(static_cast<size_t>(numel(w_shape)), 1.0 / static_cast<double>(numel(p.window.kernel))));
        const AveragePoolOp op{p.window, true, {}};
        const AveragePoolGradOp grad{p.window, true, {}, p.in};
        EXPECT_LT(relative_error(run_op1(op, {x}, out_shape), run_op1(ConvOp{p.window, channels}, {x, w}, out_shape), 1e-30), 1e-13);
        EXPECT_LT(relative_error(run_op1(grad, {dy}, shape), run_op1(ConvGradInputOp{p.window, channels, p.in}, {dy, w}, shape), 1e-30),
                  1e-13);
        expect_agreement(op, {x}, out_shape);
        expect_agreement(grad, {dy}, shape);
        expect_agreement(AveragePoolOp{p.window, false, {}}, {x}, out_shape);
        expect_agreement(AveragePoolGradOp{p.window, false, {}, p.in}, {dy}, shape);
        // Without padding in the divisor, the average of a constant is that constant wherever anything is averaged.
        const Tensor ones = Tensor::of<double>(shape, std::vector<double>(static_cast<size_t>(numel(shape)), 1.0));
        const Tensor covered = run_op1(op, {ones}, out_shape), averages = run_op1(AveragePoolOp{p.window, false, {}}, {ones}, out_shape);
        for (int64_t o = 0; o < covered.numel(); ++o) ASSERT_NEAR(element(averages, o), element(covered, o) > 0 ? 1 : 0, 1e-14);
    }
}

}  // namespace
}  // namespace convoy::ref
