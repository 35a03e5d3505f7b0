#include "base/suggest.h"

#include <vector>

#include <gtest/gtest.h>

namespace convoy {
namespace {

TEST(Suggest, NearestName) {
    const std::vector<std::string> known{"resnet18", "resnet50", "lenet5", "alexnet"};
    EXPECT_EQ(nearest("resnet81", known), "resnet18");
    EXPECT_EQ(nearest("lenet", known), "lenet5");
    EXPECT_EQ(nearest("transformer", known), "");
    EXPECT_EQ(did_you_mean("alexnt", known), "; did you mean \"alexnet\"?");
    EXPECT_EQ(did_you_mean("qqqqqqqq", known), "");
}

}  // namespace
}  // namespace convoy
