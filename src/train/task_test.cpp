#include "train/task.h"

#include "train/testing.h"

namespace convoy {
namespace {

TEST(Task, SyntheticDataTakeTheirShapeFromTheModel) {
    TrainConfig config{.model = "lenet5"};
    config.data.name = "synthetic";
    const Task task = open_task(config);
    EXPECT_EQ(task.config.input, (Shape{1, 28, 28}));
    EXPECT_EQ(task.config.classes, 10);
    EXPECT_EQ(task.train->size(), 1024);
    EXPECT_EQ(task.test->size(), 256);
    config.model = "unet3d";
    config.input = {1, 16, 16, 16};
    EXPECT_EQ(open_task(config).train->info().target_shape, (Shape{16, 16, 16}));
    config.model = "cosmoflow64";
    config.input = {};
    const Task regression = open_task(config, Splits::TestOnly);
    EXPECT_EQ(regression.train, nullptr);
    EXPECT_EQ(regression.test->info().target, TargetKind::Regression);
    EXPECT_EQ(regression.config.classes, 4);
}

TEST(Task, OtherDataGiveTheirShapeToTheModel) {
    TrainConfig config{.model = "lenet5"};
    config.data.most_train = 7;
    const Task task = open_task(config);
    EXPECT_EQ(task.config.input, (Shape{1, 28, 28}));
    EXPECT_EQ(task.train->size(), 7);
    EXPECT_EQ(task.test->size(), 10000);
    config.classes = 12;  // more than there are is allowed
    EXPECT_EQ(open_task(config, Splits::TestOnly).config.classes, 12);
}

TEST(Task, WhatDoesNotFitIsNamed) {
    const auto message = [](const TrainConfig& config) { return error_of([&] { open_task(config, Splits::TestOnly); }); };
    expect_parts(message({.model = "lenet5", .input = {3, 64, 64}}), {"\"mnist\"", "1x28x28", "3x64x64"});
    expect_parts(message({.model = "lenet5", .classes = 5}), {"\"mnist\"", "10 classes", "5"});
    expect_parts(message({.model = "unet3d"}), {"\"unet3d\"", "1x28x28"});
    expect_parts(message({.model = "lenet"}), {"lenet", "did you mean \"lenet5\""});
    expect_parts(message({.model = "lenet5", .data = {.name = "minst"}}), {"minst", "did you mean \"mnist\""});
}

TEST(Task, ModelsAreMadeAsConfigured) {
    TrainConfig config = small_config();
    config.label_smoothing = 0.25;
    EXPECT_EQ(make_model(config, Mode::Training, 3).losses[0].label_smoothing, 0.25);
    const Model model = make_model(config, Mode::Evaluation, 3);
    EXPECT_EQ(model.losses[0].label_smoothing, 0);
    EXPECT_EQ(model.graph.shape(model.graph.input("input")), (Shape{3, 1, 16, 16}));
}

}  // namespace
}  // namespace convoy
