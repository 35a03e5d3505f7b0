// Plain numbers of tensors; needs no GPU.
#include "kernels/cuda/views.h"

#include <gtest/gtest.h>

namespace convoy::cuda {
namespace {

// As positions.cuh does it.
uint32_t quotient(const Divisor& d, uint32_t n) {
    const auto high = static_cast<uint32_t>((uint64_t{d.factor} * n) >> 32);
    return (high + ((n - high) >> d.shift1)) >> d.shift2;
}

TEST(Views, DivisorsDivideAll32BitNumbers) {
    for (const uint32_t by : {1u, 2u, 3u, 7u, 10u, 641u, 65535u, 65536u, 2147483647u, 2147483648u, 4294967295u}) {
        const Divisor d = divisor_of(by);
        for (const uint32_t n : {0u, 1u, 2u, 6u, by - 1, by, by + 1, 2 * by - 1, 2147483648u, 4294967294u, 4294967295u})
            EXPECT_EQ(quotient(d, n), n / by) << n << " / " << by;
    }
}

std::string refused(const Shape& shape, int width) {
    try {
        packs_of(volume_of(shape, Layout::plain()), width);
        return "";
    } catch (const TooLarge& e) {
        return e.what();
    }
}

TEST(Views, WhatCannotBeNumberedIsAnErrorWithItsSizes) {
    EXPECT_EQ(packs_of(volume_of({2, 3, 40000, 40000}, Layout::plain()), 4), 2'400'000'000u);
    EXPECT_EQ(packs_of(volume_of({1, 1, 65535, 65537}, Layout::plain()), 1), 4'294'967'295u);
    EXPECT_NE(refused({1, 1, 65536, 65536}, 1).find("1 x 1 x 1 x 65536 x 65536 has 4294967296 elements"), std::string::npos);
    EXPECT_EQ(refused({2, 3, 40000, 40000}, 4), "");
    EXPECT_NE(refused({2, 3, 40000, 40000}, 1), "");
    EXPECT_NE(refused({1, 1, int64_t{1} << 31}, 1), "");  // places along a dim are ints
    EXPECT_NE(refused({1, 1, int64_t{1} << 33}, 1), "");
    EXPECT_NE(refused({int64_t{1} << 40, 1, 1}, 1), "");
}

}  // namespace
}  // namespace convoy::cuda
