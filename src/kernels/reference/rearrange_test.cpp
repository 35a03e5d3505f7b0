#include "kernels/reference/rearrange.h"

#include <numeric>

#include "kernels/reference/kernel_testing.h"

namespace convoy::ref {
namespace {

using namespace testing;

// 0, 1, 2, ...
Tensor counting(const Shape& shape, double first = 0) {
    Tensor tensor(shape, DType::f64);
    std::iota(tensor.as<double>().begin(), tensor.as<double>().end(), first);
    return tensor;
}

TEST(Concat, AlongEachAxis) {
    const Tensor a = counting({2, 1, 2}), b = counting({2, 2, 2}, 10);
    EXPECT_EQ(run<double>(ConcatOp{1}, {a, b}, {{2, 3, 2}})[0], doubles({2, 3, 2}, {0, 1, 10, 11, 12, 13, 2, 3, 14, 15, 16, 17}));
    EXPECT_EQ(run<double>(ConcatOp{0}, {a, a, a}, {{6, 1, 2}})[0], doubles({6, 1, 2}, {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3}));
    EXPECT_EQ(run<double>(ConcatOp{2}, {a, counting({2, 1, 1}, 20)}, {{2, 1, 3}})[0], doubles({2, 1, 3}, {0, 1, 20, 2, 3, 21}));
}

TEST(Slice, CutsABox) {
    EXPECT_EQ(run<double>(SliceOp{{1, 0, 2}, {1, 2, 2}}, {counting({2, 3, 4})}, {{1, 2, 2}})[0], doubles({1, 2, 2}, {14, 15, 18, 19}));
}

TEST(Slice, OfIndicesAndBytes) {
    Tensor indices = Tensor::of<int32_t>({4}, {7, 8, 9, 10}), part({2}, DType::i32);
    run_into<float>(SliceOp{{1}, {2}}, {&indices}, {&part});
    EXPECT_EQ(part, Tensor::of<int32_t>({2}, {8, 9}));
    Tensor bytes = Tensor::of<uint8_t>({4}, {7, 8, 9, 10}), byte_part({2}, DType::u8);
    run_into<double>(SliceOp{{2}, {2}}, {&bytes}, {&byte_part});
    EXPECT_EQ(byte_part, Tensor::of<uint8_t>({2}, {9, 10}));
}

TEST(Pad, GrowsAndCrops) {
    const Tensor x = counting({2, 3}, 1);
    EXPECT_EQ(run<double>(PadOp{{1, 0}, {0, 2}, -1}, {x}, {{3, 5}})[0],
              doubles({3, 5}, {-1, -1, -1, -1, -1, 1, 2, 3, -1, -1, 4, 5, 6, -1, -1}));
    EXPECT_EQ(run<double>(PadOp{{0, -1}, {-1, 0}, 0}, {x}, {{1, 2}})[0], doubles({1, 2}, {2, 3}));
    EXPECT_EQ(run<double>(PadOp{{0, -1}, {0, 1}, 9}, {x}, {{2, 3}})[0], doubles({2, 3}, {2, 3, 9, 5, 6, 9}));
    // Nothing of x is left, but there is padding.
    EXPECT_EQ(run<double>(PadOp{{0, -4}, {0, 2}, 9}, {x}, {{2, 1}})[0], doubles({2, 1}, {9, 9}));
    EXPECT_EQ(run<double>(PadOp{{0, 2}, {0, -4}, 9}, {x}, {{2, 1}})[0], doubles({2, 1}, {9, 9}));
}

// Cropping what was padded is what the gradient does.
TEST(Pad, NegatedIsTheInverse) {
    const Tensor x = normal({2, 3, 4, 5}, "x");
    const Tensor padded = run<double>(PadOp{{0, 0, 1, 2}, {0, 0, 3, 0}}, {x}, {{2, 3, 8, 7}})[0];
    EXPECT_EQ(run<double>(PadOp{{0, 0, -1, -2}, {0, 0, -3, 0}}, {padded}, {x.shape()})[0], x);
}

TEST(Reshape, KeepsTheOrder) {
    const Tensor x = counting({2, 3, 4});
    EXPECT_EQ(run<double>(ReshapeOp{{6, 4}}, {x}, {{6, 4}})[0], x.reshaped({6, 4}));
    EXPECT_THROW(run<double>(ReshapeOp{{5}}, {x}, {{5}}), Bug);
}

TEST(Transpose, TakesDimsInOrder) {
    EXPECT_EQ(run<double>(TransposeOp{{1, 0}}, {counting({2, 3})}, {{3, 2}})[0], doubles({3, 2}, {0, 3, 1, 4, 2, 5}));
    // y[k, i, j] = x[i, j, k]
    const Tensor x = counting({2, 3, 4}), y = run<double>(TransposeOp{{2, 0, 1}}, {x}, {{4, 2, 3}})[0];
    for (int64_t i = 0; i < 2; ++i)
        for (int64_t j = 0; j < 3; ++j)
            for (int64_t k = 0; k < 4; ++k) EXPECT_EQ(element(y, (k * 2 + i) * 3 + j), element(x, (i * 3 + j) * 4 + k));
    EXPECT_EQ(run<double>(TransposeOp{{1, 2, 0}}, {y}, {{2, 3, 4}})[0], x);
}

TEST(ExpandAndSumTo, RepeatAndSum) {
    const Tensor x = doubles({2, 1, 2}, {1, 2, 3, 4});
    const Tensor y = run<double>(ExpandOp{{2, 3, 2}}, {x}, {{2, 3, 2}})[0];
    EXPECT_EQ(y, doubles({2, 3, 2}, {1, 2, 1, 2, 1, 2, 3, 4, 3, 4, 3, 4}));
    EXPECT_EQ(run<double>(SumToOp{{2, 1, 2}}, {y}, {{2, 1, 2}})[0], doubles({2, 1, 2}, {3, 6, 9, 12}));
    EXPECT_EQ(run<double>(SumToOp{{1, 3, 1}}, {y}, {{1, 3, 1}})[0], doubles({1, 3, 1}, {10, 10, 10}));
    EXPECT_EQ(run<double>(SumToOp{{1, 1, 1}}, {y}, {{1, 1, 1}})[0], doubles({1, 1, 1}, {30}));
    EXPECT_EQ(run<double>(SumToOp{{2, 3, 2}}, {y}, {{2, 3, 2}})[0], y);
    EXPECT_EQ(run<double>(ExpandOp{{4, 3}}, {doubles({1, 1}, {5})}, {{4, 3}})[0], doubles({4, 3}, std::vector<double>(12, 5)));
}

TEST(Rearrange, TypesAndThreadsAgree) {
    const Tensor x = normal({4, 6, 30, 40}, "x"), z = normal({4, 3, 30, 40}, "z");
    expect_types_and_threads_agree(ConcatOp{1}, {x, z}, {{4, 9, 30, 40}});
    expect_types_and_threads_agree(SliceOp{{1, 2, 3, 4}, {3, 4, 20, 30}}, {x}, {{3, 4, 20, 30}});
    expect_types_and_threads_agree(PadOp{{0, 0, 1, -2}, {0, 0, 3, 4}, 0.5}, {x}, {{4, 6, 34, 42}});
    expect_types_and_threads_agree(ReshapeOp{{4, 7200}}, {x}, {{4, 7200}});
    expect_types_and_threads_agree(TransposeOp{{0, 3, 1, 2}}, {x}, {{4, 40, 6, 30}});
    expect_types_and_threads_agree(ExpandOp{{4, 6, 30, 40}}, {normal({4, 1, 1, 40}, "row")}, {{4, 6, 30, 40}});
    expect_types_and_threads_agree(SumToOp{{1, 6, 1, 40}}, {x}, {{1, 6, 1, 40}});
}

}  // namespace
}  // namespace convoy::ref
