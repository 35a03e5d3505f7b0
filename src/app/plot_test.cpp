#include "app/plot.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "base/file.h"

namespace convoy {
namespace {

TEST(Ticks, AreRoundNumbersInsideTheRange) {
    EXPECT_EQ(ticks(0, 10, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
    const auto small = ticks(0.013, 0.047, 4);
    ASSERT_EQ(small.size(), 3u);
    EXPECT_NEAR(small.front(), 0.02, 1e-12);
    EXPECT_NEAR(small.back(), 0.04, 1e-12);
}

TEST(Ticks, OfALogarithmicAxis) {
    EXPECT_EQ(logarithmic_ticks(0.9, 25), (std::vector<double>{1, 2, 5, 10, 20}));
    EXPECT_EQ(logarithmic_ticks(0.5, 12345), (std::vector<double>{1, 10, 100, 1000, 10000}));
}

int pixels_of(const Image& image, Color color) {
    int count = 0;
    for (int y = 0; y < image.height; ++y)
        for (int x = 0; x < image.width; ++x) count += image.at(x, y) == color ? 1 : 0;
    return count;
}

TEST(Plot, DrawsEverySeriesInItsPanel) {
    const Color red{200, 0, 0}, blue{0, 0, 200};
    const Image image = plot({{"one", {{"r", red, {{0, 0}, {1, 1}}}}}, {"two", {{"b", blue, {{0, 1}, {5, NAN}, {10, 0}}}}}}, "x");
    EXPECT_GT(pixels_of(image, red), 300);
    EXPECT_GT(pixels_of(image, blue), 300);
    for (int y = 0; y < image.height; ++y)
        for (int x = 0; x < image.width; ++x) {
            const bool left = x < image.width / 2;
            ASSERT_FALSE(image.at(x, y) == (left ? blue : red)) << x << "," << y;
        }
}

TEST(Plot, LeavesOutWhatALogarithmicAxisCannotShow) {
    const Color red{200, 0, 0};
    const Image whole = plot({{"p", {{"r", red, {{0, 1}, {2, 100}}}}, true}}, "x");
    const Image holed = plot({{"p", {{"r", red, {{0, 1}, {1, 0}, {1, -3}, {2, 100}}}}, true}}, "x");
    EXPECT_EQ(whole.rgb, holed.rgb);
}

TEST(Plot, TakesWhatHasNoExtent) {
    EXPECT_GT(plot({{"empty", {}}}, "x").width, 0);
    EXPECT_GT(pixels_of(plot({{"point", {{"p", {1, 2, 3}, {{7, 7}}}}}}, "x"), {1, 2, 3}), 20);
}

TEST(Plot, WritesPng) {
    const auto path = std::filesystem::path(testing::TempDir()) / "convoy_plot_test.png";
    write_png(path, plot({{"one", {{"r", {200, 0, 0}, {{0, 0}, {1, 1}}}}}}, "x"));
    const std::string bytes = read_file(path);
    EXPECT_EQ(bytes.substr(1, 3), "PNG");
    EXPECT_NE(bytes.find("IEND"), std::string::npos);
    std::filesystem::remove(path);
}

}  // namespace
}  // namespace convoy
