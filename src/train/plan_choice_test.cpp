#include "train/plan_choice.h"
#include "base/json.h"

#include "model/zoo.h"
#include "train/task.h"
#include "train/testing.h"

namespace convoy {
namespace {

class PlanChoiceTest : public TrainTest {
  protected:
    static Graph lenet5() {
        TrainConfig config;
        config.input = {1, 28, 28};
        config.classes = 10;
        return training_graph_of(config, 4);
    }
    Graph graph_ = lenet5();
};

TEST_F(PlanChoiceTest, SpecsSayHowManyRanksTheyNeed) {
    EXPECT_EQ(plan_choice("sample:2,height:2", 0).ranks, 4);
    EXPECT_EQ(plan_choice("data", 3).ranks, 3);
    EXPECT_EQ(plan_choice("", 0).ranks, 1);
    EXPECT_EQ(text_of(plan_choice("", 1)), "");
    EXPECT_EQ(text_of(plan_choice("", 2)), "data");
    EXPECT_EQ(plan_for(plan_choice("", 2), graph_).plan, plan_for(plan_choice("sample:2", 0), graph_).plan);
}

TEST_F(PlanChoiceTest, AutoWaitsForACommandThatFindsIt) {
    EXPECT_EQ(plan_choice("auto", 2).ranks, 2);
    EXPECT_EQ(plan_choice("auto", 0).ranks, 1);
    EXPECT_EQ(text_of(plan_choice("auto", 2)), "auto");
    expect_parts(error_of([&] { plan_for(plan_choice("auto", 2), graph_); }), {"auto", "convoy plan MODEL --output"});
}

TEST_F(PlanChoiceTest, AFileIsKeptAsWhatItHolds) {
    const Plan plan = plan_for(plan_choice("channel:2@x", 0), graph_).plan;
    const auto path = dir_ / "plan.json";
    write_file(path, to_json(plan).dump());
    const PlanChoice choice = plan_choice(path.string(), 0);
    EXPECT_EQ(choice.ranks, 2);
    const std::string text = text_of(choice);
    std::filesystem::remove(path);
    EXPECT_EQ(plan_for(plan_choice(text, 2), graph_).plan, plan);
}

TEST_F(PlanChoiceTest, WhatIsWrongIsSaid) {
    const auto message = [&](const std::string& text, int ranks) { return error_of([&] { plan_for(plan_choice(text, ranks), graph_); }); };
    expect_parts(message("sample:4", 2), {"sample:4", "4 ranks", "2"});
    expect_parts(message("data", 0), {"data", "--ranks"});
    expect_parts(message("samples:4", 0), {"samples", "did you mean"});
    expect_parts(message("nothing.json", 0), {"nothing.json"});
    expect_parts(message("{]", 0), {"expected JSON"});
    write_file(dir_ / "p", "{\"grids\": []}");
    expect_parts(message((dir_ / "p").string(), 0), {(dir_ / "p").string()});
    Plan plan = plan_for(plan_choice("sample:2", 0), graph_).plan;
    expect_parts(message(to_json(plan).dump(), 3), {"needs 2 ranks", "there are 3"});
    plan.layers[0].layers = "konv1";
    expect_parts(message(to_json(plan).dump(), 2), {"\"konv1\"", "no such layer", "did you mean \"conv1\"?"});
}

TEST_F(PlanChoiceTest, LayersThatCannotFollowAreListedByAxisAndReason) {
    const std::string text = text_of(plan_for(plan_choice("height:2", 0), graph_).unfollowed);
    expect_parts(text, {"along height", "fully connected", "fc1, fc2, fc3"});
    EXPECT_EQ(text_of(plan_for(plan_choice("sample:2", 0), graph_).unfollowed), "");
}

}  // namespace
}  // namespace convoy
