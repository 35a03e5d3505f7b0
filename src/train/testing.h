// For the tests of this folder: a directory, small configurations, and watching a run.
#pragma once

#include <atomic>
#include <csignal>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "train/trainer.h"

namespace convoy {

// A fresh directory for each test, removed afterwards.
class TrainTest : public testing::Test {
  protected:
    void SetUp() override { std::filesystem::create_directories(dir_); }
    void TearDown() override { std::filesystem::remove_all(dir_); }

    std::filesystem::path dir_ =
        std::filesystem::path(testing::TempDir()) /
        fmt::format("convoy_train_{}_{}", testing::UnitTest::GetInstance()->current_test_info()->name(), ::getpid());
};

// While it lives, no file of this process can grow past a size: the system's way of a full disk, without a disk.
class FullDisk {
  public:
    explicit FullDisk(size_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
        EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
        const rlimit limit{bytes, before_.rlim_max};
        EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
    }
    ~FullDisk() {
        ::setrlimit(RLIMIT_FSIZE, &before_);
        std::signal(SIGXFSZ, handler_);
    }
    FullDisk(const FullDisk&) = delete;
    FullDisk& operator=(const FullDisk&) = delete;

  private:
    rlimit before_{};
    void (*handler_)(int);
};

// LeNet-5 on 37 made-up pictures of 16x16 in batches of 8: four whole ones and one of 5.
inline TrainConfig small_config(const std::filesystem::path& run_dir = {}) {
    TrainConfig config{.input = {1, 16, 16}, .classes = 4, .epochs = 2, .batch = 8, .seed = 7, .run_dir = run_dir.string(), .log_every = 2};
    config.data = {.name = "synthetic", .synthetic_train = 37, .synthetic_test = 19};
    config.schedule = {.lr = 0.05, .decay = Decay::Cosine, .warmup_steps = 3};
    return config;
}

// Notes what a run says, and sets the stop flag after a step.
class Recorder : public TrainObserver {
  public:
    explicit Recorder(int64_t stop_after = -1) : stop_after_(stop_after) {}

    void on_start(const TrainStart& s) override { start = s; }
    void on_step(const StepReport& report) override {
        steps.push_back(report);
        if (report.step == stop_after_) stop = true;
    }
    void on_epoch(const EpochReport& report) override { epochs.push_back(report); }
    void on_checkpoint(const std::filesystem::path&, int64_t step) override { checkpoints.push_back(step); }
    void on_message(const std::string& text) override { messages.push_back(text); }

    TrainStart start;
    std::vector<StepReport> steps;
    std::vector<EpochReport> epochs;
    std::vector<int64_t> checkpoints;
    std::vector<std::string> messages;
    std::atomic<bool> stop = false;

  private:
    int64_t stop_after_;
};

inline TrainResult run(const TrainConfig& config, Recorder& recorder, bool resume = false) {
    return train(config, {.resume = resume, .stop = &recorder.stop}, recorder);
}

inline TrainResult run(const TrainConfig& config, bool resume = false) {
    Recorder recorder;
    return run(config, recorder, resume);
}

// What `action` throws as an E; "" when it throws nothing.
template <class E = Error>
std::string error_of(const std::function<void()>& action) {
    try {
        action();
    } catch (const E& error) {
        return error.what();
    }
    return "";
}

// The message has all these parts.
inline void expect_parts(const std::string& message, const std::vector<std::string>& parts) {
    for (const std::string& part : parts)
        EXPECT_NE(message.find(part), std::string::npos) << "\"" << part << "\" is not in \"" << message << "\"";
}

}  // namespace convoy
