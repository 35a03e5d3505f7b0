// The functions are compiled here for the default instruction set; how the others contract products and sums differs by rounding only.
#include "kernels/cpu/vector/math.h"

#include <cmath>

#include <gtest/gtest.h>

namespace convoy::cpu::vec::CONVOY_ISA {
namespace {

double relative(float found, double expected) { return std::abs(static_cast<double>(found) / expected - 1); }

TEST(VectorMath, IsAsExactAsFloats) {
    for (double x = -87; x < 88.7; x += 0.0137) {
        const float f = static_cast<float>(x);
        ASSERT_LT(relative(exp_of(f), std::exp(static_cast<double>(f))), 2e-7) << x;
        ASSERT_LT(relative(sigmoid_of(f), 1 / (1 + std::exp(-static_cast<double>(f)))), 3e-7) << x;
    }
    for (double x = 1e-8; x < 12; x *= 1.001)
        for (const float f : {static_cast<float>(x), static_cast<float>(-x)}) {
            ASSERT_LT(relative(tanh_of(f), std::tanh(static_cast<double>(f))), 6e-7) << x;
            ASSERT_LT(relative(erf_of(f), std::erf(static_cast<double>(f))), 6e-7) << x;
        }
}

TEST(VectorMath, Limits) {
    EXPECT_EQ(exp_of(0), 1);
    EXPECT_EQ(exp_of(-1000), 0);
    EXPECT_TRUE(std::isinf(exp_of(1000)));
    EXPECT_TRUE(std::isfinite(exp_of(88.7f)));
    EXPECT_EQ(sigmoid_of(-1000), 0);
    EXPECT_EQ(sigmoid_of(1000), 1);
    for (const float sign : {-1.0f, 1.0f}) {
        EXPECT_EQ(tanh_of(sign * 1000), sign);
        EXPECT_EQ(erf_of(sign * 1000), sign);
    }
    const float nan = std::nanf("");
    for (const float y : {exp_of(nan), sigmoid_of(nan), tanh_of(nan), erf_of(nan)}) EXPECT_TRUE(std::isnan(y));
}

}  // namespace
}  // namespace convoy::cpu::vec::CONVOY_ISA
