// The loop: what is learned, what is said and written, and what goes wrong. Going on after an interruption is in resume_test.cpp.
#include "train/trainer.h"
#include "base/json.h"

#include "data/safetensors.h"
#include "exec/counting_allocator.h"
#include "train/testing.h"
#include "train/weights.h"

namespace convoy {
namespace {

namespace fs = std::filesystem;

using TrainerTest = TrainTest;

TEST_F(TrainerTest, LearnsWhatCanBeLearned) {
    TrainConfig config = small_config();
    config.data.synthetic_train = 400;
    config.data.synthetic_test = 100;
    config.epochs = 4;
    Recorder recorder;
    const TrainResult result = run(config, recorder);
    EXPECT_GE(result.test_accuracy, 0.95);
    EXPECT_GE(result.best_accuracy, result.test_accuracy);
    ASSERT_EQ(recorder.epochs.size(), 4u);
    EXPECT_LT(recorder.epochs[3].train_loss, 0.5 * recorder.epochs[0].train_loss);
    EXPECT_EQ(result.train_loss, recorder.epochs[3].train_loss);
    EXPECT_EQ(result.steps, 200);
    EXPECT_EQ(result.epochs, 4);
    EXPECT_FALSE(result.stopped_early);
    EXPECT_GT(result.samples_per_s, 0);
}

TEST_F(TrainerTest, SaysWhatItDoes) {
    Recorder recorder;
    run(small_config(dir_), recorder);
    EXPECT_EQ(recorder.start.steps_per_epoch, 5);
    EXPECT_EQ(recorder.start.total_steps, 10);
    EXPECT_EQ(recorder.start.train_samples, 37);
    EXPECT_GT(recorder.start.parameters, 10000);
    EXPECT_GT(recorder.start.arena_bytes, 0);
    ASSERT_EQ(recorder.steps.size(), 10u);
    EXPECT_EQ(recorder.steps[6].step, 7);
    EXPECT_EQ(recorder.steps[6].epoch, 2);
    EXPECT_EQ(recorder.steps[6].batch, 2);
    EXPECT_DOUBLE_EQ(recorder.steps[0].lr, 0.05 / 3);
    EXPECT_EQ(recorder.checkpoints, (std::vector<int64_t>{5, 10}));
    // The epoch's loss is the mean over samples, where the last batch of 5 counts less.
    double sum = 0;
    for (size_t i = 0; i < 5; ++i) sum += recorder.steps[i].loss * (i < 4 ? 8 : 5);
    EXPECT_DOUBLE_EQ(recorder.epochs[0].train_loss, sum / 37);
}

TEST_F(TrainerTest, TheRunDirectoryHoldsConfigurationMetricsAndCheckpoints) {
    TrainConfig config = small_config(dir_);
    config.checkpoint_every = 3;
    config.keep = 2;
    Recorder recorder;
    run(config, recorder);
    EXPECT_EQ(recorder.checkpoints, (std::vector<int64_t>{3, 5, 6, 9, 10}));
    EXPECT_EQ(read_config(dir_), config);
    EXPECT_TRUE(fs::exists(dir_ / "checkpoints" / "step-00000009" / "state.safetensors"));
    EXPECT_FALSE(fs::exists(dir_ / "checkpoints" / "step-00000006"));
    std::string text = read_file(dir_ / "metrics.jsonl"), shape;
    std::vector<Json> lines;
    for (size_t end = text.find('\n'); end != std::string::npos; text.erase(0, end + 1), end = text.find('\n'))
        lines.push_back(Json::parse(text.substr(0, end)));
    for (const Json& line : lines) shape += line["kind"].get<std::string>()[0] + std::to_string(line["step"].get<int>()) + " ";
    EXPECT_EQ(shape, "s2 s4 e5 s6 s8 s10 e10 ");
    EXPECT_EQ(lines[2]["loss"].get<double>(), recorder.epochs[0].train_loss);
    EXPECT_EQ(lines[2]["test_accuracy"].get<double>(), *recorder.epochs[0].validation->accuracy);
    EXPECT_DOUBLE_EQ(lines[0]["loss"].get<double>(), (recorder.steps[0].loss + recorder.steps[1].loss) / 2);
    EXPECT_TRUE(lines[0].contains("lr") && lines[0].contains("accuracy") && lines[0].contains("samples_per_s") &&
                lines[0].contains("data_wait_s"));
}

TEST_F(TrainerTest, MicroBatchesGiveTheSameSteps) {
    const auto weights = [&](int micro_batches) {
        TrainConfig config = small_config(dir_ / std::to_string(micro_batches));
        config.dtype = DType::f64;
        config.micro_batches = micro_batches;
        config.log_every = 0;
        run(config);
        return weights_file(config.run_dir);
    };
    const SafetensorsFile one(weights(1)), two(weights(2)), eight(weights(8));
    for (const std::string& name : one.names()) {
        EXPECT_LE(relative_error(two.read(name), one.read(name), 1e-3), 1e-12) << name;
        EXPECT_LE(relative_error(eight.read(name), one.read(name), 1e-3), 1e-12) << name;
    }
    EXPECT_FALSE(two.read("fc1.weight") == one.read("fc1.weight")) << "the batch was not cut";
}

TEST_F(TrainerTest, ADatasetSmallerThanTheBatchIsOneBatch) {
    TrainConfig config = small_config();
    config.batch = 64;
    config.micro_batches = 4;  // does not divide 37
    EXPECT_EQ(run(config).steps, 2);
}

TEST_F(TrainerTest, AllOptimizersAndARegressionRun) {
    for (const char* name : {"sgd", "nesterov", "adagrad", "rmsprop", "adamw", "lars", "lamb"}) {
        TrainConfig config = small_config();
        config.optimizer = {.rule = {.rule = rule_named(name), .weight_decay = 1e-4}, .clip_norm = 1};
        config.schedule.lr = 1e-3;
        config.epochs = 1;
        config.label_smoothing = 0.1;
        EXPECT_LT(run(config).train_loss, 2) << name;
    }
    TrainConfig config{.model = "cosmoflow64", .input = {1, 8, 8, 8}, .classes = 2, .batch = 2};
    config.data = {.name = "synthetic", .synthetic_train = 5, .synthetic_test = 2};
    config.schedule.lr = 1e-4;
    const TrainResult result = run(config);
    EXPECT_GT(result.train_loss, 0);
    EXPECT_TRUE(result.test_loss.has_value());
    EXPECT_FALSE(result.test_accuracy.has_value());
}

TEST_F(TrainerTest, NanStopsNamesStepAndLayerAndKeepsTheCheckpoint) {
    TrainConfig config = small_config(dir_);
    run(config);
    const std::string metrics = read_file(dir_ / "metrics.jsonl"), state = read_file(weights_file(dir_));
    config.schedule = {.lr = 1e30};
    config.epochs = 3;
    Recorder recorder;
    const std::string message = error_of<NonFiniteError>([&] { run(config, recorder, true); });
    expect_parts(message, {"step 12 (epoch 3, batch 2 of 5)", "the loss is", "layer \"conv2\"", "was not done",
                           "step-00000010 (step 10), is intact"});
    EXPECT_EQ(recorder.steps.size(), 1u);
    EXPECT_EQ(read_file(dir_ / "metrics.jsonl"), metrics);
    EXPECT_EQ(read_file(weights_file(dir_)), state);
}

// Batch norm stores its running statistics before the loss is known; what the failed step left there must not be taken for the cause.
TEST_F(TrainerTest, NanNamesTheLayerThroughBatchNormToo) {
    TrainConfig config{.model = "resnet20", .input = {3, 8, 8}, .classes = 3, .batch = 4};
    config.data = {.name = "synthetic", .synthetic_train = 16, .synthetic_test = 4};
    config.schedule.lr = 1e30;
    const std::string message = error_of<NonFiniteError>([&] { run(config); });
    expect_parts(message, {"step 2 ", "the loss is", "layer \""});
    EXPECT_EQ(message.find("running"), std::string::npos) << message;
}

TEST_F(TrainerTest, NothingIsTrainedInADirectoryThatCannotBeUsed) {
    write_file(dir_ / "file", "");
    Recorder recorder;
    expect_parts(error_of([&] { run(small_config(dir_ / "file" / "run"), recorder); }), {"run directory", "file/run"});
    run(small_config(dir_ / "taken"), recorder);
    recorder.steps.clear();
    expect_parts(error_of([&] { run(small_config(dir_ / "taken"), recorder); }),
                 {"already holds a run", "taken", "step-00000010", "resume"});
    expect_parts(error_of([&] { run(small_config(dir_ / "none"), recorder, true); }), {"cannot resume", "none", "config.json"});
    EXPECT_FALSE(fs::exists(dir_ / "none"));
    expect_parts(error_of([&] { run(small_config(), recorder, true); }), {"no run directory"});
    EXPECT_TRUE(recorder.steps.empty());
}

TEST_F(TrainerTest, AFullDiskEndsTheRunWithTheLastCheckpointIntact) {
    TrainConfig config = small_config(dir_);
    config.epochs = 1;
    run(config);
    config.epochs = 2;
    std::string message;
    {
        const FullDisk limit(50000);
        message = error_of([&] { run(config, true); });
    }
    expect_parts(message, {"step 10 could not be written", "the last good one is", "step-00000005"});
    EXPECT_EQ(run(config, true).steps, 10);
}

// Between two steps without metrics or a checkpoint: batches, programs and sums have all their memory.
TEST_F(TrainerTest, StepsAllocateNothing) {
    class Counter : public TrainObserver {
      public:
        void on_step(const StepReport& report) override {
            if (report.step > 2) most = std::max(most, stop_counting_allocations());
            if (report.step >= 2 && report.batch < report.batches - 1) start_counting_allocations();
        }
        int64_t most = 0;
    } counter;
    TrainConfig config = small_config();
    config.epochs = 1;
    config.log_every = 0;
    config.micro_batches = 2;
    train(config, {}, counter);
    EXPECT_EQ(counter.most, 0);
}

}  // namespace
}  // namespace convoy
