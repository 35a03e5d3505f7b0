#include "tensor/layout.h"

#include <set>

#include <gtest/gtest.h>

namespace convoy {
namespace {

TEST(Layout, Text) {
    EXPECT_EQ(Layout::plain().text(), "plain");
    EXPECT_EQ(Layout::channels_last(4).text(), "acdb");
    EXPECT_EQ(Layout::blocked(4, 16).text(), "aBcd16b");
}

TEST(Layout, BlocksRoundUp) {
    EXPECT_EQ(bytes_of({2, 17, 3, 3}, DType::f32, Layout::blocked(4, 16)), 2 * 32 * 9 * 4);
    EXPECT_EQ(bytes_of({2, 17, 3, 3}, DType::f32, Layout::channels_last(4)), 2 * 17 * 9 * 4);
}

TEST(Layout, KnownOffsets) {
    const Shape shape{2, 20, 3, 4};
    EXPECT_EQ(element_offset(shape, Layout::plain(), {1, 2, 1, 3}), ((1 * 20 + 2) * 3 + 1) * 4 + 3);
    EXPECT_EQ(element_offset(shape, Layout::channels_last(4), {1, 2, 1, 3}), ((1 * 3 + 1) * 4 + 3) * 20 + 2);
    EXPECT_EQ(element_offset(shape, Layout::blocked(4, 16), {1, 18, 1, 3}), (((1 * 2 + 1) * 3 + 1) * 4 + 3) * 16 + 2);
}

TEST(Layout, Equivalence) {
    const Layout last = Layout::channels_last(4), blocked = Layout::blocked(4, 16);
    EXPECT_TRUE(equivalent({8, 32, 1, 1}, Layout::plain(), last));
    EXPECT_TRUE(equivalent({8, 32, 1, 1}, Layout::plain(), blocked));
    EXPECT_TRUE(equivalent({8, 16, 3, 3}, last, blocked));
    EXPECT_FALSE(equivalent({8, 20, 1, 1}, Layout::plain(), blocked));
    EXPECT_FALSE(equivalent({8, 32, 2, 1}, Layout::plain(), last));
    EXPECT_FALSE(equivalent({8, 32, 3, 3}, last, blocked));
    EXPECT_FALSE(equivalent({int64_t{1} << 40, 32, 3, 3}, last, blocked));  // at once, however large a dim is
    EXPECT_TRUE(equivalent({int64_t{1} << 40, 16, 3, 3}, last, blocked));
}

TEST(Layout, EveryElementHasItsOwnPlace) {
    const Shape shape{3, 5, 2, 3};
    const Layout twice{{0, 1, 2, 3}, {{1, 2}, {0, 2}}, "", 0};
    for (const auto& layout : {Layout::plain(), Layout::channels_last(4), Layout::blocked(4, 4), twice}) {
        std::set<int64_t> seen;
        const int64_t limit = bytes_of(shape, DType::u8, layout);
        for (int64_t n = 0; n < 3; ++n)
            for (int64_t c = 0; c < 5; ++c)
                for (int64_t h = 0; h < 2; ++h)
                    for (int64_t w = 0; w < 3; ++w) {
                        const int64_t offset = element_offset(shape, layout, {n, c, h, w});
                        EXPECT_LT(offset, limit);
                        EXPECT_TRUE(seen.insert(offset).second);
                    }
    }
}

}  // namespace
}  // namespace convoy
