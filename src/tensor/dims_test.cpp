#include "tensor/dims.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace convoy {
namespace {

TEST(Dims, Basics) {
    const Shape s{2, 3, 5};
    EXPECT_EQ(numel(s), 30);
    EXPECT_EQ(numel(Shape{}), 1);
    EXPECT_EQ(row_major_strides(s), (Dims{15, 5, 1}));
    EXPECT_EQ(s.slice(1), (Dims{3, 5}));
    EXPECT_EQ(join(Dims{1}, s), (Dims{1, 2, 3, 5}));
    EXPECT_NE(s, (Dims{2, 3}));
    EXPECT_THROW(join(join(s, s), s), Bug);
}

TEST(Dims, Text) {
    EXPECT_EQ(to_string(Shape{8, 3, 224}), "8x3x224");
    EXPECT_EQ(to_string(Shape{}), "scalar");
    EXPECT_EQ(parse_dims("3x64x64"), (Dims{3, 64, 64}));
    for (const char* bad : {"", "3x", "x3", "3x0", "3x-1", "3y4", "1x1x1x1x1x1x1x1x1", "99999999999999999999"})
        EXPECT_THROW(parse_dims(bad), Error);
}

}  // namespace
}  // namespace convoy
