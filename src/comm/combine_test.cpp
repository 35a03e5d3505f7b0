#include "comm/combine.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "base/error.h"
#include "tensor/tensor.h"

namespace convoy {

namespace {

Tensor combined(const Tensor& a, const Tensor& b, ReduceOp op) {
    Tensor dst(a.shape(), a.dtype());
    combine_of(a.dtype(), op)(dst.data(), a.data(), b.data(), a.numel());
    return dst;
}

TEST(Combine, AddsAndCompares) {
    for (const DType type : {DType::f64, DType::f32, DType::bf16, DType::i64, DType::i32, DType::u8}) {
        const Tensor a = Tensor::of<double>({3}, {1, 5, 7}).to(type), b = Tensor::of<double>({3}, {2, 5, 3}).to(type);
        EXPECT_EQ(combined(a, b, ReduceOp::Sum), Tensor::of<double>({3}, {3, 10, 10}).to(type)) << name_of(type);
        EXPECT_EQ(combined(a, b, ReduceOp::Max), Tensor::of<double>({3}, {2, 5, 7}).to(type)) << name_of(type);
        EXPECT_EQ(combined(a, b, ReduceOp::Min), Tensor::of<double>({3}, {1, 5, 3}).to(type)) << name_of(type);
    }
}

TEST(Combine, Bf16RoundsLikeTensors) {
    std::vector<double> x, y;
    for (int i = 0; i < 1000; ++i) {
        x.push_back(std::sin(i) * std::exp2(i % 17));
        y.push_back(std::cos(3 * i) * std::exp2(i % 13));
    }
    const Tensor a = Tensor::of<double>({1000}, x).to(DType::bf16), b = Tensor::of<double>({1000}, y).to(DType::bf16);
    std::vector<float> sums;
    for (int64_t i = 0; i < 1000; ++i) sums.push_back(static_cast<float>(element(a, i)) + static_cast<float>(element(b, i)));
    EXPECT_EQ(combined(a, b, ReduceOp::Sum), Tensor::of<float>({1000}, sums).to(DType::bf16));
}

TEST(Combine, KeepsNaN) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (const DType type : {DType::f64, DType::f32, DType::bf16}) {
        const Tensor a = Tensor::of<double>({2}, {nan, 1}).to(type), b = Tensor::of<double>({2}, {1, nan}).to(type);
        for (const ReduceOp op : {ReduceOp::Sum, ReduceOp::Max, ReduceOp::Min})
            for (int64_t i = 0; i < 2; ++i) EXPECT_TRUE(std::isnan(element(combined(a, b, op), i))) << name_of(type) << name_of(op);
    }
}

TEST(Combine, RefusesWhatItDoesNotAdd) {
    EXPECT_THROW(combine_of(DType::f16, ReduceOp::Sum), Error);
    EXPECT_THROW(combine_of(DType::tf32, ReduceOp::Sum), Error);
}

}  // namespace

}  // namespace convoy
