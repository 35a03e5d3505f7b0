#include "program/plan.h"
#include "base/json.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace convoy {
namespace {

TEST(Plan, Patterns) {
    EXPECT_TRUE(matches("layer4.*", "layer4.0.conv1"));
    EXPECT_TRUE(matches("*", ""));
    EXPECT_TRUE(matches("a*b*c", "axxbyybc"));
    EXPECT_FALSE(matches("a*b*c", "axxbyyb"));
    EXPECT_FALSE(matches("fc", "fc1"));
}

TEST(Plan, RoundTripsThroughJson) {
    using K = AxisPlacement::Kind;
    Plan plan;
    plan.grids = {Grid::over({{"sample", 2}, {"channel", 2}}), Grid::single(3)};
    plan.layers = {{.layers = "fc*",
                    .grid = 0,
                    .input = {{K::Replicate, 0}, {K::Split, 1}},
                    .weight = {{K::Replicate, 0}, {K::Split, 1}},
                    .output = {{K::Replicate, 0}, {K::Partial, 0}}},
                   {.layers = "*", .grid = 1, .global_norm = false}};
    EXPECT_EQ(plan_from_json(to_json(plan)), plan);
    EXPECT_EQ(plan_from_json(Json::parse(to_json(Plan::single()).dump())), Plan::single());
    EXPECT_EQ(layer_plan(plan, "fc2").grid, 0);
    EXPECT_EQ(layer_plan(plan, "conv").grid, 1);
}

TEST(Plan, MistakesAreNamed) {
    const auto error_of = [](const char* text) -> std::string {
        try {
            plan_from_json(Json::parse(text));
        } catch (const Error& e) {
            return e.what();
        }
        return "";
    };
    EXPECT_NE(error_of(R"({"grids": []})").find("layers"), std::string::npos);
    EXPECT_NE(
        error_of(R"({"grids": [{"axes": [], "ranks": [0]}], "layers": [{"layers": "*", "grid": 1}]})").find("name grid 1, but there are 1"),
        std::string::npos);
    EXPECT_NE(error_of(R"({"grids": [{"axes": [], "ranks": [0]}], "layers": [{"layers": "*", "grid": 0, "input": ["replicate"]}]})")
                  .find("1 entries, but its grid has 0 axes"),
              std::string::npos);
    EXPECT_THROW(layer_plan(Plan{{Grid::single()}, {{.layers = "fc"}}}, "conv"), Error);
}

}  // namespace
}  // namespace convoy
