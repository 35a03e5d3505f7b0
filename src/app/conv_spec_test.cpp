#include "app/conv_spec.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "model/zoo.h"

namespace convoy {
namespace {

TEST(ConvSpec, IsReadAndWritten) {
    const ConvSpec spec = parse_conv("n16c64h56w28f32k3x1s2p1x0");
    EXPECT_EQ(spec.x, (Shape{16, 64, 56, 28}));
    EXPECT_EQ(spec.w, (Shape{32, 64, 3, 1}));
    EXPECT_EQ(spec.y, (Shape{16, 32, 28, 14}));
    EXPECT_DOUBLE_EQ(spec.operations(), 2.0 * 16 * 32 * 28 * 14 * 64 * 3);
    for (const std::string word : {"n16c64h56w56f64k3s1p1", "n2c16d32h32w32f32k3s1p1", "n1c4w9f8k3s1p0l2g4", "n1c4h8w9f8k1x3s1p0x1"})
        EXPECT_EQ(parse_conv(word).text(), word);
}

TEST(ConvSpec, FaultsAreNamed) {
    const auto fault = [](const std::string& word) {
        try {
            parse_conv(word);
        } catch (const Error& e) {
            return std::string(e.what());
        }
        return std::string();
    };
    EXPECT_NE(fault("n1c4w9f8").find("k is missing"), std::string::npos);
    EXPECT_NE(fault("n1c4w9f8kz").find("expected a number"), std::string::npos);
    EXPECT_NE(fault("n1c4w9f8k3q1").find("found \"q\""), std::string::npos);
    EXPECT_NE(fault("n1c4w9f8k3k3").find("k is given twice"), std::string::npos);
    EXPECT_NE(fault("n1c4w2f8k3").find("larger than the input"), std::string::npos);
    EXPECT_NE(fault("n1c4w9f8k3g3").find("3 groups do not divide"), std::string::npos);
    EXPECT_NE(fault("n1c4w9f8k3x3").find("k has 2 numbers, the input 1 dims"), std::string::npos);
    EXPECT_NE(fault("n1c0w9f8k3").find("c must be at least 1"), std::string::npos);
}

TEST(ConvSpec, ModelsListTheirDistinctLayers) {
    const auto list = convs_of(make_model("vgg16", {.batch = 2}).graph);
    EXPECT_EQ(list.size(), 9u);
    size_t layers = 0;
    for (const ConvSpec& spec : list) layers += spec.layers.size();
    EXPECT_EQ(layers, 13u);
    EXPECT_EQ(list[0].text(), "n2c3h224w224f64k3s1p1");
}

}  // namespace
}  // namespace convoy
