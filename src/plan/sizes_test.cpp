#include "plan/sizes.h"

#include <gtest/gtest.h>

namespace convoy {
namespace {

TEST(Sizes, HaveThreeDigitsAndAUnit) {
    EXPECT_EQ(size_text(0), "0 B");
    EXPECT_EQ(size_text(999), "999 B");
    EXPECT_EQ(size_text(1024), "1.00 KiB");
    EXPECT_EQ(size_text(1000), "0.98 KiB");
    EXPECT_EQ(size_text(317 * 1024), "317 KiB");
    EXPECT_EQ(size_text(int64_t{3} << 29), "1.50 GiB");
    EXPECT_EQ(size_text(int64_t{16} << 30), "16.0 GiB");
    EXPECT_EQ(size_text(int64_t{1} << 60), "1048576 TiB");
}

TEST(Sizes, OfferedSizesAreEnough) {
    EXPECT_EQ(size_at_least(int64_t{16} << 30), "16.0GiB");
    EXPECT_EQ(size_at_least((int64_t{16} << 30) + 1), "16.1GiB");
    EXPECT_EQ(size_at_least(1025), "1.01KiB");
}

}  // namespace
}  // namespace convoy
