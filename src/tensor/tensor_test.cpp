#include "tensor/tensor.h"

#include <bit>
#include <cmath>

#include <gtest/gtest.h>

namespace convoy {
namespace {

TEST(Tensor, CopiesElements) {
    Tensor a = Tensor::of<float>({2, 2}, {1, 2, 3, 4});
    const Tensor b = a;
    a.as<float>()[0] = 9;
    EXPECT_EQ(b.as<float>()[0], 1);
    EXPECT_FALSE(a == b);
    EXPECT_EQ(b.reshaped({4}).shape(), Shape{4});
    EXPECT_THROW((void)b.as<double>(), Bug);
}

TEST(Tensor, RoundTripsThroughEveryType) {
    const Tensor a = Tensor::of<double>({5}, {0, 1, 2, 100, 200});
    for (const DType t : {DType::f64, DType::f32, DType::bf16, DType::f16, DType::i64, DType::i32, DType::u8})
        EXPECT_EQ(a.to(t).to(DType::f64), a) << name_of(t);
    EXPECT_EQ(Tensor::of<int64_t>({1}, {1234567}).to(DType::i32).as<int32_t>()[0], 1234567);
}

TEST(Tensor, HalfTypesRoundToNearest) {
    const auto half = [](float v, DType t) { return element(Tensor::of<float>({1}, {v}).to(t), 0); };
    EXPECT_EQ(half(1.0f + 0x1p-9f, DType::bf16), 1.0);  // a tie goes to even
    EXPECT_EQ(half(1.0f + 0x1.8p-8f, DType::bf16), 1.0 + 0x1p-7);
    EXPECT_EQ(half(65519.0f, DType::f16), 65504.0);
    EXPECT_TRUE(std::isinf(half(65520.0f, DType::f16)));
    EXPECT_EQ(half(0x1p-24f, DType::f16), 0x1p-24);
    EXPECT_EQ(half(2047.9f, DType::f16), 2048.0);
    EXPECT_TRUE(std::isnan(half(NAN, DType::f16)));
    EXPECT_TRUE(std::isnan(half(NAN, DType::bf16)));
}

TEST(Tensor, RelativeError) {
    const Tensor a = Tensor::of<double>({2}, {3, 4}), b = Tensor::of<double>({2}, {3, 4.5});
    EXPECT_EQ(relative_error(a, a), 0);
    EXPECT_NEAR(relative_error(b, a), 0.1, 1e-12);
    EXPECT_NEAR(relative_error(b, a, 50), 0.01, 1e-12);
    EXPECT_TRUE(std::isnan(relative_error(Tensor::of<double>({2}, {NAN, 4}), a)));
}

}  // namespace
}  // namespace convoy
