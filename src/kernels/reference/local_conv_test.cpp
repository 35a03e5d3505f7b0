#include "kernels/reference/local_conv.h"

#include "kernels/reference/test_support.h"

namespace convoy::ref {
namespace {

using namespace testing;

TEST(LocalConv, KnownAnswer) {
    // One channel, one filter, windows of two with one zero in front; the weights differ at each of the three places.
    Window window = Window::of({2});
    window.pad_lo = {1};
    const Tensor x = doubles({1, 1, 3}, {1, 2, 3}), w = doubles({1, 3, 1, 2}, {1, 10, 2, 20, 3, 30}), dy = doubles({1, 1, 3}, {1, 2, 3});
    expect_near(run_op1(LocalConvOp{window}, {x, w}, {1, 1, 3}), {10, 2 + 40, 6 + 90});
    expect_near(run_op1(LocalConvGradInputOp{window, {3}}, {dy, w}, {1, 1, 3}), {10 + 4, 40 + 9, 90});
    expect_near(run_op1(LocalConvGradWeightOp{window}, {x, dy}, {1, 3, 1, 2}), {0, 1, 2, 4, 6, 9});
}

// With the same weights at every place it is a convolution, and its weight gradient summed over the places is the convolution's.
TEST(LocalConv, EqualWeightsMakeAConvolution) {
    for (int i = 0; i < test_count(60, 600); ++i) {
        Draw draw("local conv", i);
        const auto [window, in, out] = draw_window(draw, {.length = 7, .kernel = 3});
        const int64_t batch = draw.between(1, 3), channels = draw.between(1, 3), filters = draw.between(1, 3);
        const int64_t places = numel(out), patch = channels * numel(window.kernel);
        const Shape x_shape = join({batch, channels}, in), y_shape = join({batch, filters}, out),
                    w_shape = join({filters, channels}, window.kernel);
        const Shape local_shape = join(join({filters}, out), join({channels}, window.kernel));
        const Tensor x = draw.normal(x_shape), w = draw.normal(w_shape), dy = draw.normal(y_shape);
        Tensor repeated(local_shape, DType::f64);
        for (int64_t j = 0; j < repeated.numel(); ++j)
            repeated.as<double>()[static_cast<size_t>(j)] = element(w, j / patch / places * patch + j % patch);

        const auto same = [](const Tensor& a, const Tensor& b) { EXPECT_LT(relative_error(a, b, 1e-30), 1e-13); };
        same(run_op1(LocalConvOp{window}, {x, repeated}, y_shape), run_op1(ConvOp{window, 1}, {x, w}, y_shape));
        same(run_op1(LocalConvGradInputOp{window, in}, {dy, repeated}, x_shape), run_op1(ConvGradInputOp{window, 1, in}, {dy, w}, x_shape));
        const Tensor local_dw = run_op1(LocalConvGradWeightOp{window}, {x, dy}, local_shape);
        Tensor summed(w_shape, DType::f64);
        for (int64_t j = 0; j < local_dw.numel(); ++j)
            summed.as<double>()[static_cast<size_t>(j / patch / places * patch + j % patch)] += element(local_dw, j);
        same(summed, run_op1(ConvGradWeightOp{window, 1}, {x, dy}, w_shape));

        expect_agreement(LocalConvOp{window}, {x, repeated}, y_shape);
        expect_agreement(LocalConvGradInputOp{window, in}, {dy, repeated}, x_shape);
        expect_agreement(LocalConvGradWeightOp{window}, {x, dy}, local_shape);
    }
}

}  // namespace
}  // namespace convoy::ref
