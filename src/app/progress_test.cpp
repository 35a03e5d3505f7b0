#include "app/progress.h"

#include <gtest/gtest.h>

namespace convoy {
namespace {

StepReport half_way() {
    return {.step = 500,
            .total_steps = 1000,
            .epoch = 1,
            .epochs = 2,
            .batch = 250,
            .batches = 500,
            .loss = 0.2,
            .epoch_loss = 0.25,
            .epoch_accuracy = 0.9731,
            .samples_per_s = 12345.6,
            .data_wait_s = 1.5,
            .eta_s = 42};
}

TEST(BarLine, SaysEverythingWhereThereIsRoom) {
    const std::string line = bar_line(half_way(), 140);
    for (const char* part : {"epoch 1/2", "50%", "loss 0.2500", "acc 97.31 %", "ETA 42 s", "12,345 samples/s", "data wait 1.5 s",
                             "[===================>                    ]"})
        EXPECT_NE(line.find(part), std::string::npos) << part << " in " << line;
}

TEST(BarLine, FitsAnyWidth) {
    for (int width = 0; width < 200; ++width) EXPECT_LE(bar_line(half_way(), width).size(), static_cast<size_t>(width));
}

TEST(BarLine, KeepsTheLossOnANarrowTerminal) { EXPECT_NE(bar_line(half_way(), 40).find("loss 0.2500"), std::string::npos); }

TEST(EpochLine, LeavesOutWhatARegressionHasNot) {
    const EpochReport report{
        .epoch = 1, .epochs = 1, .train_loss = 0.5, .validation = EvalResult{.loss = 0.75}, .samples_per_s = 10, .seconds = 3};
    const std::string line = epoch_line(report);
    EXPECT_EQ(line, "epoch 1/1  train loss 0.5000  test loss 0.7500  10.0 samples/s  3.0 s  data wait 0.0 s");
}

}  // namespace
}  // namespace convoy
