#include "kernels/reference/linear.h"

#include "kernels/reference/test_support.h"

namespace convoy::ref {
namespace {

using namespace testing;

TEST(Linear, KnownAnswer) {
    const Tensor x = doubles({2, 3}, {1, 2, 3, 4, 5, 6}), w = doubles({2, 3}, {1, 0, -1, 2, 1, 0}), dy = doubles({2, 2}, {1, 2, 3, 4});
    expect_near(run_op1(LinearOp{}, {x, w}, {2, 2}), {-2, 4, -2, 13});
    expect_near(run_op1(LinearGradInputOp{}, {dy, w}, {2, 3}), {5, 2, -1, 11, 4, -3});
    expect_near(run_op1(LinearGradWeightOp{}, {x, dy}, {2, 3}), {13, 17, 21, 18, 24, 30});
}

TEST(Linear, TypesAndThreadsAgree) {
    for (int i = 0; i < test_count(30, 300); ++i) {
        Draw draw("linear", i);
        const int64_t batch = draw.between(1, 60), inputs = draw.between(1, 90), outputs = draw.between(1, 70);
        const Tensor x = draw.normal({batch, inputs}), w = draw.normal({outputs, inputs}), dy = draw.normal({batch, outputs});
        expect_agreement(LinearOp{}, {x, w}, {batch, outputs});
        expect_agreement(LinearGradInputOp{}, {dy, w}, {batch, inputs});
        expect_agreement(LinearGradWeightOp{}, {x, dy}, {outputs, inputs});
    }
}

TEST(Linear, NoSamples) {
    const Tensor x({0, 3}, DType::f64), w = doubles({2, 3}, {1, 0, -1, 2, 1, 0}), dy({0, 2}, DType::f64);
    EXPECT_EQ(run_op1(LinearOp{}, {x, w}, {0, 2}).numel(), 0);
    expect_near(run_op1(LinearGradWeightOp{}, {x, dy}, {2, 3}), {0, 0, 0, 0, 0, 0});
}

TEST(Bias, KnownAnswer) {
    const Tensor x = doubles({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
    expect_near(run_op1(BiasOp{1}, {x, doubles({2}, {10, 20})}, {2, 2, 2}), {11, 12, 23, 24, 15, 16, 27, 28});
    expect_near(run_op1(BiasOp{1}, {x, doubles({2, 2}, {10, 20, 30, 40})}, {2, 2, 2}), {11, 22, 33, 44, 15, 26, 37, 48});
    expect_near(run_op1(BiasGradOp{1, 1}, {x}, {2}), {1 + 2 + 5 + 6, 3 + 4 + 7 + 8});
    expect_near(run_op1(BiasGradOp{1, 2}, {x}, {2, 2}), {6, 8, 10, 12});
    expect_near(run_op1(BiasGradOp{2, 1}, {x}, {2}), {16, 20});
    expect_near(run_op1(BiasGradOp{0, 1}, {x}, {2}), {10, 26});
}

TEST(Bias, InPlace) {
    Tensor x = doubles({1, 2, 2}, {1, 2, 3, 4}), b = doubles({2}, {10, 20});
    const std::vector<Operand> in{operand_of(x), operand_of(b)}, out{operand_of(x)};
    run_reference(BiasOp{1}, in, out, nullptr, 2, {});
    expect_near(x, {11, 12, 23, 24});
}

TEST(Bias, TypesAndThreadsAgree) {
    for (int i = 0; i < test_count(30, 300); ++i) {
        Draw draw("bias", i);
        const Shape shape = draw.dims(static_cast<int>(draw.between(2, 5)), 1, i % 2 == 0 ? 5 : 12);
        const int axis = static_cast<int>(draw.between(0, shape.size() - 1)), rank = static_cast<int>(draw.between(1, shape.size() - axis));
        const Shape b = shape.slice(axis, axis + rank);
        expect_agreement(BiasOp{axis}, {draw.normal(shape), draw.normal(b)}, shape);
        expect_agreement(BiasGradOp{axis, rank}, {draw.normal(shape)}, b);
    }
}

// More sums than are made at a time.
TEST(Bias, LongLastDim) {
    Draw draw("long bias", 0);
    const Tensor dy = draw.normal({3, 150});
    std::vector<double> expected(150, 0);
    for (int64_t i = 0; i < 450; ++i) expected[static_cast<size_t>(i % 150)] += element(dy, i);
    for (const int threads : {1, 2}) expect_near(run_op1(BiasGradOp{1, 1}, {dy}, {150}, threads), expected);
}

}  // namespace
}  // namespace convoy::ref
