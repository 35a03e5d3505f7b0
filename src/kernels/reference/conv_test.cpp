#include "kernels/reference/conv.h"

#include "kernels/reference/conv_columns.h"
#include "kernels/reference/conv_direct.h"
#include "kernels/reference/test_support.h"

namespace convoy::ref {
namespace {

using namespace testing;

struct Problem {
    Window window;
    int64_t groups;
    Shape x, w, y;
};

std::string text(const Problem& p) {
    return fmt::format("x {} w {} y {} groups {} stride {} dilation {} pad {} {}", to_string(p.x), to_string(p.w), to_string(p.y), p.groups,
                       to_string(p.window.stride), to_string(p.window.dilation), to_string(p.window.pad_lo), to_string(p.window.pad_hi));
}

Problem draw_problem(Draw& draw) {
    const auto [window, in, out] = draw_window(draw);
    const int64_t groups = draw.between(1, 3), channels = draw.between(1, 4), filters = draw.between(1, 4), batch = draw.between(1, 3);
    return {window, groups, join({batch, channels * groups}, in), join({filters * groups, channels}, window.kernel),
            join({batch, filters * groups}, out)};
}

template <class SomeOp>
Tensor direct(const SomeOp& op, std::vector<Tensor> inputs, const Shape& output) {
    Tensor result(output, DType::f64);
    std::vector<Operand> in, out{operand_of(result)};
    for (auto& t : inputs) in.push_back(operand_of(t));
    conv_direct<double>(op, KernelArgs{in, out});
    return result;
}

template <class SomeOp>
void check(const SomeOp& op, const std::vector<Tensor>& inputs, const Shape& output, const Problem& problem) {
    EXPECT_LT(relative_error(run_op1(op, inputs, output), direct(op, inputs, output), 1e-30), 1e-13) << text(problem);
    expect_agreement(op, inputs, output);
}

void check_all(const Problem& p, Draw& draw) {
    const Tensor x = draw.normal(p.x), w = draw.normal(p.w), dy = draw.normal(p.y);
    check(ConvOp{p.window, p.groups}, {x, w}, p.y, p);
    check(ConvGradInputOp{p.window, p.groups, p.x.slice(2)}, {dy, w}, p.x, p);
    check(ConvGradWeightOp{p.window, p.groups}, {x, dy}, p.w, p);
}

TEST(Conv, KnownAnswer) {
    // Cross-correlation of 1..5 with (1, 10, 100), one zero in front and two behind, every second place.
    Window window = Window::of({3});
    window.stride = {2};
    window.pad_lo = {1};
    window.pad_hi = {2};
    const Tensor x = doubles({1, 1, 5}, {1, 2, 3, 4, 5}), w = doubles({1, 1, 3}, {1, 10, 100}), dy = doubles({1, 1, 3}, {1, 2, 3});
    expect_near(run_op1(ConvOp{window, 1}, {x, w}, {1, 1, 3}), {210, 432, 54});
    expect_near(run_op1(ConvGradInputOp{window, 1, {5}}, {dy, w}, {1, 1, 5}), {10, 100 + 2, 20, 200 + 3, 30});
    expect_near(run_op1(ConvGradWeightOp{window, 1}, {x, dy}, {1, 1, 3}), {0 * 1 + 2 * 2 + 4 * 3, 1 + 3 * 2 + 5 * 3, 2 + 4 * 2});
}

TEST(Conv, NegativePaddingCrops) {
    Window window = Window::of({2});
    window.pad_lo = {-1};
    window.pad_hi = {-2};
    const Tensor x = doubles({1, 1, 6}, {9, 1, 2, 3, 9, 9}), w = doubles({1, 1, 2}, {1, 10}), dy = doubles({1, 1, 2}, {1, 2});
    expect_near(run_op1(ConvOp{window, 1}, {x, w}, {1, 1, 2}), {21, 32});
    expect_near(run_op1(ConvGradInputOp{window, 1, {6}}, {dy, w}, {1, 1, 6}), {0, 1, 12, 20, 0, 0});
    expect_near(run_op1(ConvGradWeightOp{window, 1}, {x, dy}, {1, 1, 2}), {5, 8});
}

// The definition once more, without any code of the kernels: an input padded by hand, and an output in two dims and two groups.
TEST(Conv, TwoDimsFromTheDefinition) {
    Window window{{2, 3}, {2, 1}, {1, 2}, {1, 0}, {0, 2}};
    Draw draw("two dims", 0);
    const Tensor x = draw.normal({2, 4, 5, 6}), w = draw.normal({6, 2, 2, 3});
    const auto at = [&](int64_t n, int64_t c, int64_t h, int64_t v) {
        return h < 0 || h >= 5 || v < 0 || v >= 6 ? 0.0 : element(x, ((n * 4 + c) * 5 + h) * 6 + v);
    };
    std::vector<double> expected;
    for (int64_t n = 0; n < 2; ++n)
        for (int64_t f = 0; f < 6; ++f)
            for (int64_t oh = 0; oh < 3; ++oh)
                for (int64_t ow = 0; ow < 4; ++ow) {
                    double sum = 0;
                    for (int64_t c = 0; c < 2; ++c)
                        for (int64_t kh = 0; kh < 2; ++kh)
                            for (int64_t kw = 0; kw < 3; ++kw)
                                sum +=
                                    at(n, (f < 3 ? 0 : 2) + c, 2 * oh - 1 + kh, ow + 2 * kw) * element(w, ((f * 2 + c) * 2 + kh) * 3 + kw);
                    expected.push_back(sum);
                }
    expect_near(run_op1(ConvOp{window, 2}, {x, w}, {2, 6, 3, 4}), expected);
    expect_near(direct(ConvOp{window, 2}, {x, w}, {2, 6, 3, 4}), expected);
}

TEST(Conv, AgreesWithDirectLoopsOnRandomProblems) {
    for (int i = 0; i < test_count(300, 3000); ++i) {
        Draw draw("conv", i);
        check_all(draw_problem(draw), draw);
    }
}

TEST(Conv, PointwiseReadsInPlace) {
    for (int i = 0; i < test_count(20, 200); ++i) {
        Draw draw("pointwise", i);
        const int rank = static_cast<int>(draw.between(1, 3));
        const Dims in = draw.dims(rank, 1, 6);
        const Window window = Window::of(Dims::filled(rank, 1));
        const int64_t groups = draw.between(1, 2), batch = draw.between(1, 3);
        check_all({window, groups, join({batch, 3 * groups}, in), join({2 * groups, 3}, window.kernel), join({batch, 2 * groups}, in)},
                  draw);
    }
}

TEST(Conv, MorePositionsThanOneBlockHolds) {
    Window window = Window::of({3, 3});
    window.pad_lo = window.pad_hi = {1, 1};
    const Problem problem{window, 1, {1, 16, 41, 43}, {5, 16, 3, 3}, {1, 5, 41, 43}};
    const auto g = geometry(window, problem.x, problem.y);
    ASSERT_LT(column_block(g, 16 * 9, 8), g.out_count());
    Draw draw("blocks", 0);
    check_all(problem, draw);
}

// A rank may own no samples or no rows.
TEST(Conv, NothingToDo) {
    const Window window = Window::of({3});
    for (const Shape& x : {Shape{0, 2, 5}, Shape{2, 2, 2}}) {
        const Shape y{x[0], 3, window.output(0, x[2])}, w{3, 2, 3};
        ASSERT_EQ(numel(y), 0);
        const Tensor zeros_x(x, DType::f64), weight = Tensor::of<double>(w, std::vector<double>(18, 1)), dy(y, DType::f64);
        for (const int threads : {1, 2}) {
            EXPECT_EQ(run_op1(ConvOp{window, 1}, {zeros_x, weight}, y, threads).numel(), 0);
            EXPECT_EQ(run_op1(ConvGradInputOp{window, 1, {x[2]}}, {dy, weight}, x, threads), zeros_x);
            EXPECT_EQ(run_op1(ConvGradWeightOp{window, 1}, {zeros_x, dy}, w, threads), Tensor(w, DType::f64));
        }
    }
}

TEST(Conv, SameBitsEveryTime) {
    Draw draw("bits", 0);
    Window window = Window::of({3, 3});
    const Tensor x = draw.normal({7, 3, 12, 12}).to(DType::f32), dy = draw.normal({7, 4, 10, 10}).to(DType::f32);
    const Tensor first = run_op1(ConvGradWeightOp{window, 1}, {x, dy}, {4, 3, 3, 3}, 3);
    for (int i = 0; i < 10; ++i) EXPECT_EQ(run_op1(ConvGradWeightOp{window, 1}, {x, dy}, {4, 3, 3, 3}, 3), first);
}

}  // namespace
}  // namespace convoy::ref
