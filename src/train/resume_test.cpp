// Interrupted and resumed runs against uninterrupted ones: the same bytes.
#include <sys/wait.h>

#include "base/json.h"
#include "train/metrics.h"
#include "train/testing.h"
#include "train/weights.h"

namespace convoy {
namespace {

namespace fs = std::filesystem;

// metrics.jsonl without what depends on the clock.
std::string metrics_of(const fs::path& run_dir) {
    std::string text = read_file(run_dir / "metrics.jsonl"), result;
    for (size_t end = text.find('\n'); end != std::string::npos; text.erase(0, end + 1), end = text.find('\n')) {
        Json line = Json::parse(text.substr(0, end));
        for (const auto field : kTimingFields) line.erase(std::string(field));
        result += line.dump() + "\n";
    }
    return result + text;
}

class ResumeTest : public TrainTest {
  protected:
    TrainConfig in(const char* name, TrainConfig config) const {
        config.run_dir = (dir_ / name).string();
        return config;
    }

    void expect_same_runs(const char* a, const char* b) const {
        EXPECT_EQ(metrics_of(dir_ / a), metrics_of(dir_ / b));
        EXPECT_EQ(weights_file(dir_ / a).parent_path().filename(), weights_file(dir_ / b).parent_path().filename());
        EXPECT_TRUE(read_file(weights_file(dir_ / a)) == read_file(weights_file(dir_ / b))) << "the states differ";
    }

    // Trains without interruption in "whole", and with the stop flag set after each of `stops` in "parts".
    void expect_stops_change_nothing(const TrainConfig& config, const std::vector<int64_t>& stops) const {
        const TrainResult whole = run(in("whole", config));
        bool resume = false;
        for (const int64_t stop : stops) {
            Recorder recorder(stop);
            const TrainResult part = run(in("parts", config), recorder, resume);
            EXPECT_TRUE(part.stopped_early);
            EXPECT_EQ(part.steps, stop);
            EXPECT_EQ(recorder.checkpoints.back(), stop);
            resume = true;
        }
        Recorder recorder;
        const TrainResult rest = run(in("parts", config), recorder, resume);
        EXPECT_EQ(recorder.start.first_step, stops.back());
        EXPECT_FALSE(rest.stopped_early);
        EXPECT_EQ(rest.train_loss, whole.train_loss);
        EXPECT_EQ(rest.test_accuracy, whole.test_accuracy);
        EXPECT_EQ(rest.best_accuracy, whole.best_accuracy);
        expect_same_runs("whole", "parts");
    }
};

TEST_F(ResumeTest, MomentumInTheMiddleOfAnEpoch) { expect_stops_change_nothing(small_config(), {3}); }

TEST_F(ResumeTest, AdamInF64SeveralTimes) {
    TrainConfig config = small_config();
    config.dtype = DType::f64;
    config.optimizer.rule.rule = Rule::Adam;
    config.schedule.lr = 1e-3;
    config.micro_batches = 2;
    expect_stops_change_nothing(config, {1, 7, 9});
}

TEST_F(ResumeTest, AfterTheLastStepOfAnEpochBeforeItsValidation) { expect_stops_change_nothing(small_config(), {5, 10}); }

TEST_F(ResumeTest, WithDropout) {
    TrainConfig config{.model = "squeezenet1_1", .input = {3, 32, 32}, .classes = 3, .epochs = 2, .batch = 2, .keep = 1, .log_every = 1};
    config.data = {.name = "synthetic", .synthetic_train = 5, .synthetic_test = 2};
    config.schedule.lr = 1e-3;
    expect_stops_change_nothing(config, {2});
    // That dropout took part: without it the run is another.
    config.dropout = false;
    run(in("without", config));
    EXPECT_NE(metrics_of(dir_ / "without"), metrics_of(dir_ / "whole"));
}

TEST_F(ResumeTest, WithBatchNorm) {
    TrainConfig config{.model = "resnet20", .input = {3, 8, 8}, .classes = 3, .epochs = 2, .batch = 4, .log_every = 1};
    config.data = {.name = "synthetic", .synthetic_train = 10, .synthetic_test = 4};
    config.optimizer.rule = {.rule = Rule::AdamW, .weight_decay = 0.01};
    config.schedule.lr = 1e-3;
    expect_stops_change_nothing(config, {4});
}

// SIGKILL in the middle of an epoch, some steps after a checkpoint; then again before the next one.
TEST_F(ResumeTest, KilledInTheMiddleOfAnEpoch) {
    class Suicide : public TrainObserver {
      public:
        explicit Suicide(int64_t step) : step_(step) {}
        void on_step(const StepReport& report) override {
            if (report.step == step_) ::kill(::getpid(), SIGKILL);
        }

      private:
        int64_t step_;
    };
    TrainConfig config = small_config();
    config.log_every = 1;
    config.checkpoint_every = 3;
    bool resume = false;
    for (const int64_t step : {2, 5, 8, 8}) {  // before any checkpoint, at the end of an epoch, and twice at the same place
        const pid_t child = ::fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            try {
                Suicide observer(step);
                train(in("parts", config), {.resume = resume}, observer);
            } catch (...) {
            }
            ::_exit(3);
        }
        int status = 0;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        ASSERT_TRUE(WIFSIGNALED(status)) << "the child ended by itself";
        resume = true;
    }
    EXPECT_EQ(CheckpointStore(dir_ / "parts").list()[0].filename(), "step-00000006");
    run(in("parts", config), true);
    run(in("whole", config));
    expect_same_runs("whole", "parts");
}

TEST_F(ResumeTest, FromTheCheckpointBeforeADamagedOne) {
    const TrainConfig config = small_config();
    run(in("whole", config));
    Recorder first(8);
    run(in("parts", config), first);
    const fs::path newest = weights_file(dir_ / "parts");
    fs::resize_file(newest, fs::file_size(newest) / 2);
    Recorder recorder;
    run(in("parts", config), recorder, true);
    EXPECT_EQ(recorder.start.first_step, 5);
    ASSERT_EQ(recorder.messages.size(), 1u);
    expect_parts(recorder.messages[0], {"step-00000008", "truncated", "step-00000005"});
    expect_same_runs("whole", "parts");
}

TEST_F(ResumeTest, MoreEpochsMayBeAdded) {
    TrainConfig config = small_config();
    config.schedule = {.lr = 0.02};  // one that does not depend on the number of epochs
    run(in("whole", config));
    config.epochs = 1;
    run(in("parts", config));
    config.epochs = 2;
    run(in("parts", config), true);
    expect_same_runs("whole", "parts");
}

TEST_F(ResumeTest, AFinishedRunGivesItsResultAgain) {
    const TrainResult first = run(in("run", small_config()));
    Recorder recorder;
    const TrainResult again = run(in("run", small_config()), recorder, true);
    EXPECT_TRUE(recorder.steps.empty());
    EXPECT_TRUE(recorder.checkpoints.empty());
    EXPECT_EQ(again.test_accuracy, first.test_accuracy);
    EXPECT_EQ(again.train_loss, first.train_loss);
}

TEST_F(ResumeTest, AnotherRunIsRefusedAndNothingIsLost) {
    run(in("run", small_config()));
    const std::string metrics = read_file(dir_ / "run" / "metrics.jsonl"), config = read_file(dir_ / "run" / "config.json");
    TrainConfig other = in("run", small_config());
    other.batch = 4;
    expect_parts(error_of([&] { run(other, true); }), {"cannot resume", "batch", "8", "4"});
    other = in("run", small_config());
    other.classes = 5;
    expect_parts(error_of([&] { run(other, true); }), {"cannot resume", "classes", "4", "5"});
    EXPECT_EQ(read_file(dir_ / "run" / "metrics.jsonl"), metrics);
    EXPECT_EQ(read_file(dir_ / "run" / "config.json"), config);
}

}  // namespace
}  // namespace convoy
