#include "tensor/tensor.h"

#include <algorithm>
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

TEST(Tensor, IsZeroWhateverItsSize) {
    for (const int64_t count : {0, 1, 1000, (8 << 20) - 1, 8 << 20, (8 << 20) + 13}) {
        Tensor t({count}, DType::f32);
        EXPECT_EQ(reinterpret_cast<uintptr_t>(t.data()) % Buffer::kAlignment, 0u);
        EXPECT_TRUE(std::all_of(t.as<float>().begin(), t.as<float>().end(), [](float x) { return x == 0; })) << count;
        std::fill(t.as<float>().begin(), t.as<float>().end(), 1.0f);
    }
}

TEST(Tensor, PartsAreTakenAndPutBack) {
    const Shape shape{3, 4, 2, 5};
    Tensor whole(shape, DType::i32);
    for (size_t i = 0; i < 120; ++i) whole.as<int32_t>()[i] = static_cast<int32_t>(i);
    for (const Box& box : {Box::whole(shape), Box{{1, 0, 0, 0}, {2, 4, 2, 5}}, Box{{0, 1, 0, 0}, {3, 2, 2, 5}},
                           Box{{1, 1, 1, 1}, {2, 2, 1, 3}}, Box{{0, 0, 0, 4}, {3, 4, 2, 1}}, Box{{0, 2, 0, 0}, {3, 0, 2, 5}}}) {
        const Tensor part = part_of(whole, box);
        ASSERT_EQ(part.shape(), box.shape);
        Tensor again(shape, DType::i32);
        put_part(again, box, part);
        size_t at = 0;
        for (int32_t i = 0; i < 120; ++i) {
            const Dims index{i / 40, i / 10 % 4, i / 5 % 2, i % 5};
            bool inside = true;
            for (int d = 0; d < 4; ++d) inside = inside && index[d] >= box.begin(d) && index[d] < box.end(d);
            if (inside) {
                EXPECT_EQ(part.as<int32_t>()[at++], i) << to_string(box);
            }
            EXPECT_EQ(again.as<int32_t>()[static_cast<size_t>(i)], inside ? i : 0) << to_string(box);
        }
    }
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
