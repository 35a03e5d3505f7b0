#include "train/evaluate.h"

#include "train/testing.h"

namespace convoy {
namespace {

class EvaluateTest : public TrainTest {};

TEST_F(EvaluateTest, ACheckpointGivesWhatTheValidationGave) {
    const TrainConfig config = small_config(dir_);
    const TrainResult trained = run(config);
    const EvalResult result = evaluate(config, dir_);
    EXPECT_EQ(result.loss, trained.test_loss);
    EXPECT_EQ(result.accuracy, trained.test_accuracy);
    EXPECT_EQ(result.samples, 19);
    const EvalResult untrained = evaluate(config, {});
    EXPECT_NE(untrained.loss, result.loss);
    EXPECT_EQ(evaluate(config, dir_, {.split = Split::Train}).samples, 37);
}

// The mean is over samples: batches of 8, 8 and 3 give what one batch of 19 gives.
TEST_F(EvaluateTest, ASmallerLastBatchWeighsLess) {
    TrainConfig config = small_config();
    config.dtype = DType::f64;
    const EvalResult in_batches = evaluate(config, {});
    config.batch = 19;
    const EvalResult at_once = evaluate(config, {});
    EXPECT_NEAR(in_batches.loss, at_once.loss, 1e-14);
    EXPECT_EQ(in_batches.accuracy, at_once.accuracy);
    config.batch = 100;
    EXPECT_EQ(evaluate(config, {}).loss, at_once.loss);
}

TEST_F(EvaluateTest, VoxelsAndRealNumbers) {
    TrainConfig voxels{.model = "unet3d", .input = {1, 16, 16, 16}, .batch = 1};
    voxels.data = {.name = "synthetic", .synthetic_train = 1, .synthetic_test = 1};
    const EvalResult result = evaluate(voxels, {});
    ASSERT_TRUE(result.accuracy);
    EXPECT_GT(*result.accuracy, 0);
    EXPECT_LT(*result.accuracy, 1);
}

TEST_F(EvaluateTest, StopsWhenAsked) {
    const std::atomic<bool> stop = true;
    EXPECT_EQ(evaluate(small_config(), {}, {.stop = &stop}).samples, 0);
}

}  // namespace
}  // namespace convoy
