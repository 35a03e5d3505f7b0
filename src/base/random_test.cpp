#include "base/random.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "base/random_fill.h"

namespace convoy {
namespace {

// Published known answers of Philox 4x32-10.
TEST(Philox, KnownAnswers) {
    EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
    EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}), (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
    EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
              (std::array<uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomStream, EachCoordinateMatters) {
    const RandomStream r{7, 3, 11};
    EXPECT_EQ(r.bits(5), (RandomStream{7, 3, 11}.bits(5)));
    EXPECT_NE(r.bits(5), r.bits(6));
    EXPECT_NE(r.bits(5), (RandomStream{8, 3, 11}.bits(5)));
    EXPECT_NE(r.bits(5), (RandomStream{7, 4, 11}.bits(5)));
    EXPECT_NE(r.bits(5), (RandomStream{7, 3, 12}.bits(5)));
}

TEST(RandomStream, Moments) {
    const RandomStream r{1, 0, stream_of("moments")};
    const int count = 200000;
    double mean = 0, normal_mean = 0, normal_square = 0;
    for (int i = 0; i < count; ++i) {
        mean += r.uniform(i) / count;
        normal_mean += r.normal(i) / count;
        normal_square += r.normal(i) * r.normal(i) / count;
    }
    EXPECT_NEAR(mean, 0.5, 0.003);
    EXPECT_NEAR(normal_mean, 0, 0.01);
    EXPECT_NEAR(normal_square, 1, 0.02);
}

TEST(RandomStream, ManyAtOnceAreTheSame) {
    const RandomStream r{5, 2, stream_of("many")};
    for (const uint64_t first : {0, 1, 2, 3, 4, 1001})
        for (const size_t count : {0, 1, 2, 5, 64}) {
            std::vector<double> uniforms(count), normals(count);
            fill_uniform(r, first, uniforms);
            fill_normal(r, first, normals);
            for (size_t i = 0; i < count; ++i) {
                EXPECT_EQ(uniforms[i], r.uniform(first + i)) << first << " " << i;
                EXPECT_EQ(normals[i], r.normal(first + i)) << first << " " << i;
            }
        }
}

TEST(Permutation, HoldsEveryNumberOnce) {
    auto order = permutation({3, 1, 4}, 1000);
    EXPECT_NE(order[0] + order[1] + order[2], 3);
    EXPECT_EQ(order, permutation({3, 1, 4}, 1000));
    EXPECT_NE(order, permutation({3, 2, 4}, 1000));
    std::sort(order.begin(), order.end());
    for (int64_t i = 0; i < 1000; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
}

}  // namespace
}  // namespace convoy
