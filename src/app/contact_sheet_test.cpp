#include "app/contact_sheet.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "data/synthetic.h"

namespace convoy {
namespace {

TEST(ContactSheet, SamplesAreSpread) {
    EXPECT_EQ(spread(100, 4), (std::vector<int64_t>{0, 25, 50, 75}));
    EXPECT_EQ(spread(3, 8), (std::vector<int64_t>{0, 1, 2}));
}

// Whatever the samples are, there is a sheet, and it is not empty.
TEST(ContactSheet, OfEveryKind) {
    const DatasetInfo grey{"grey", {1, 12, 12}, TargetKind::Class, {}, 3, {"one", "two", "a very long name of a class that cannot fit"}};
    const DatasetInfo colour{"colour", {3, 8, 16}, TargetKind::Class, {}, 3};
    const DatasetInfo line{"line", {2, 9}, TargetKind::Regression, {2}, 0};
    const DatasetInfo volume{"volume", {1, 8, 8, 8}, TargetKind::Voxel, {8, 8, 8}, 4};
    const DatasetInfo field{"field", {4, 8, 8, 8}, TargetKind::Regression, {4}, 0};
    for (const DatasetInfo& info : {grey, colour, line, volume, field}) {
        const auto data = make_synthetic(info, 10, 1, 2.0);
        const Image image = contact_sheet(*data, {.count = 6, .columns = 8, .side = 32});
        ASSERT_GT(image.width, 32) << info.name;
        ASSERT_GT(image.height, 16) << info.name;
        EXPECT_NE(std::count(image.rgb.begin(), image.rgb.end(), uint8_t{255}), static_cast<long>(image.rgb.size())) << info.name;
        EXPECT_EQ(image.at(0, 0), (Color{255, 255, 255})) << info.name;
        EXPECT_NE(image.at(8 + 16, 8 + 4), (Color{255, 255, 255})) << info.name;
    }
    const auto voxels = contact_sheet(*make_synthetic(volume, 10, 1, 2.0), {.count = 6, .columns = 8, .side = 32});
    EXPECT_EQ(voxels.width, 8 + 2 * (3 * 34 - 2 + 8));  // three slices a sample, two samples a row
}

}  // namespace
}  // namespace convoy
