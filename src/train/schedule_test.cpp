#include "train/schedule.h"
#include "base/json.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/error.h"

namespace convoy {
namespace {

constexpr ScheduleSpan kSpan{.batch = 512, .steps_per_epoch = 10, .total_steps = 100};

TEST(Schedule, ConstantStaysAndScalesWithTheBatch) {
    EXPECT_EQ(lr_at({.lr = 0.1}, 0, kSpan), 0.1);
    EXPECT_EQ(lr_at({.lr = 0.1}, 99, kSpan), 0.1);
    EXPECT_DOUBLE_EQ(lr_at({.lr = 0.1, .reference_batch = 256}, 50, kSpan), 0.2);
}

TEST(Schedule, StepsFallEveryFewEpochs) {
    const Schedule schedule{.lr = 1, .decay = Decay::Step, .every_epochs = 3, .gamma = 0.5};
    EXPECT_EQ(lr_at(schedule, 29, kSpan), 1);
    EXPECT_EQ(lr_at(schedule, 30, kSpan), 0.5);
    EXPECT_EQ(lr_at(schedule, 60, kSpan), 0.25);
}

TEST(Schedule, MilestonesFallAtTheStartOfTheirEpochs) {
    const Schedule schedule{.lr = 1, .decay = Decay::Milestones, .gamma = 0.1, .milestones = {2, 5}};
    EXPECT_EQ(lr_at(schedule, 19, kSpan), 1);
    EXPECT_DOUBLE_EQ(lr_at(schedule, 20, kSpan), 0.1);
    EXPECT_DOUBLE_EQ(lr_at(schedule, 49, kSpan), 0.1);
    EXPECT_DOUBLE_EQ(lr_at(schedule, 50, kSpan), 0.01);
}

TEST(Schedule, CosineGoesFromThePeakToTheFloorAfterTheWarmUp) {
    const Schedule schedule{.lr = 1, .decay = Decay::Cosine, .floor = 0.2, .warmup_epochs = 2};
    EXPECT_DOUBLE_EQ(lr_at(schedule, 20, kSpan), 1);
    EXPECT_DOUBLE_EQ(lr_at(schedule, 60, kSpan), 0.6);
    EXPECT_NEAR(lr_at(schedule, 100, kSpan), 0.2, 1e-15);
    for (int64_t step = 20; step < 99; ++step) EXPECT_GT(lr_at(schedule, step, kSpan), lr_at(schedule, step + 1, kSpan));
}

// The rule of large batches: 0.1 for 256, scaled by the batch, reached in five epochs from 0.1.
TEST(Schedule, WarmUpRisesLinearlyToTheScaledPeak) {
    const Schedule schedule{.lr = 0.1, .reference_batch = 256, .warmup_epochs = 5, .warmup_from = 0.1};
    EXPECT_DOUBLE_EQ(lr_at(schedule, 0, kSpan), 0.1 + 0.1 / 50);
    EXPECT_DOUBLE_EQ(lr_at(schedule, 24, kSpan), 0.15);
    EXPECT_DOUBLE_EQ(lr_at(schedule, 49, kSpan), 0.2);
    EXPECT_DOUBLE_EQ(lr_at(schedule, 50, kSpan), 0.2);
    const Schedule by_steps{.lr = 1, .warmup_epochs = 0.25, .warmup_steps = 2};  // round(2.5) + 2
    EXPECT_DOUBLE_EQ(lr_at(by_steps, 0, kSpan), 0.2);
    EXPECT_DOUBLE_EQ(lr_at(by_steps, 4, kSpan), 1);
}

TEST(Schedule, JsonRoundTrip) {
    const Schedule schedule{.lr = 1.0 / 3,
                            .reference_batch = 256,
                            .decay = Decay::Milestones,
                            .every_epochs = 7,
                            .gamma = 0.3,
                            .milestones = {30, 60},
                            .floor = 1e-5,
                            .warmup_epochs = 0.5,
                            .warmup_steps = 9,
                            .warmup_from = 0.01};
    EXPECT_EQ(schedule_from_json(Json::parse(to_json(schedule).dump())), schedule);
    EXPECT_EQ(schedule_from_json(Json::object()), Schedule{});
    EXPECT_THROW(schedule_from_json({{"lr", -1}}), Error);
    EXPECT_THROW(schedule_from_json({{"decay", "cosin"}}), Error);
    EXPECT_THROW(schedule_from_json({{"decay", "milestones"}}), Error);
    EXPECT_THROW(schedule_from_json({{"lrr", 1}}), Error);
}

}  // namespace
}  // namespace convoy
