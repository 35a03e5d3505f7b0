#include "train/checkpoint.h"

#include <cmath>
#include <csignal>

#include <sys/wait.h>

#include "base/random.h"
#include "base/test_count.h"
#include "data/bytes.h"
#include "data/safetensors.h"
#include "exec/session.h"
#include "model/zoo.h"
#include "train/checksum.h"
#include "train/run_directory.h"
#include "train/testing.h"
#include "train/weights.h"

namespace convoy {
namespace {

namespace fs = std::filesystem;

std::unique_ptr<Session> session_of(const std::string& model, Rule rule = Rule::Momentum, int64_t classes = 4) {
    auto session = std::make_unique<Session>(SessionOptions{.seed = 5});
    session->load(training_graph(make_model(model, {.batch = 2, .input = {1, 16, 16}, .classes = classes}), {.rule = {.rule = rule}}));
    return session;
}

class CheckpointTest : public TrainTest {
  protected:
    void SetUp() override {
        TrainTest::SetUp();
        session_ = session_of("lenet5");
    }
    fs::path write(int64_t step, int keep = 3) { return CheckpointStore(dir_, keep).write(at(step), session_->state()); }
    static Checkpoint at(int64_t step) {
        return {.config = small_config(),
                .train_samples = 37,
                .progress = {.step = step, .epoch = step / 5, .batch = step % 5, .samples = 8 * step}};
    }
    std::vector<std::string> names() const {
        std::vector<std::string> found;
        for (const auto& entry : fs::directory_iterator(dir_ / "checkpoints")) found.push_back(entry.path().filename().string());
        std::sort(found.begin(), found.end());
        return found;
    }
    std::optional<fs::path> latest() {
        warnings_.clear();
        return CheckpointStore(dir_).latest([&](const std::string& text) { warnings_.push_back(text); });
    }
    static void cut(const fs::path& file) { fs::resize_file(file, fs::file_size(file) - 1); }
    static void flip(const fs::path& file) {
        std::string bytes = read_file(file);
        bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
        write_file(file, bytes);
    }

    std::unique_ptr<Session> session_;
    std::vector<std::string> warnings_;
};

TEST_F(CheckpointTest, RoundTrip) {
    Checkpoint checkpoint = at(12);
    checkpoint.progress.in_epoch = {.loss = 1.0 / 3, .correct = 11, .samples = 16};
    checkpoint.progress.in_window = {.loss = 0x1.fffffffffffffp-3, .correct = 2, .samples = 8};
    checkpoint.progress.last = EpochOutcome{.train_loss = 0.1, .test_loss = 1e-300};
    checkpoint.progress.best_accuracy = 2.0 / 3;
    const fs::path path = CheckpointStore(dir_).write(checkpoint, session_->state());
    EXPECT_EQ(path.filename(), "step-00000012");
    const Checkpoint again = read_checkpoint(path);
    EXPECT_EQ(again.progress, checkpoint.progress);
    EXPECT_EQ(again.config, checkpoint.config);
    EXPECT_EQ(again.train_samples, 37);

    Session other({.seed = 6});
    other.load(training_graph(make_model("lenet5", {.batch = 2, .input = {1, 16, 16}, .classes = 4}), {.rule = {.rule = Rule::Momentum}}));
    EXPECT_FALSE(other.state().read("conv1.weight") == session_->state().read("conv1.weight"));
    load_state(path, other.state());
    for (const StateSpec& spec : session_->state().specs())
        EXPECT_TRUE(other.state().read(spec.name) == session_->state().read(spec.name)) << spec.name;
}

TEST_F(CheckpointTest, TheNewestAreKept) {
    for (const int64_t step : {5, 10, 15}) write(step, 2);
    EXPECT_EQ(names(), (std::vector<std::string>{"step-00000010", "step-00000015"}));
    write(20, 1);
    EXPECT_EQ(names(), (std::vector<std::string>{"step-00000020"}));
    write(20, 1);  // once more in the same place
    EXPECT_EQ(names(), (std::vector<std::string>{"step-00000020"}));
    EXPECT_EQ(latest(), dir_ / "checkpoints" / "step-00000020");
}

TEST_F(CheckpointTest, LeftoversOfKilledWritesAreIgnoredAndRemoved) {
    write(5);
    fs::create_directories(dir_ / "checkpoints" / ".tmp-step-00000007");
    write_file(dir_ / "checkpoints" / ".tmp-step-00000007" / "state.safetensors", "half");
    fs::create_directories(dir_ / "checkpoints" / ".trash-step-00000001");
    fs::create_directories(dir_ / "checkpoints" / "step-notes");  // no checkpoint: stays
    EXPECT_EQ(latest(), dir_ / "checkpoints" / "step-00000005");
    EXPECT_TRUE(warnings_.empty());
    write(10);
    EXPECT_EQ(names(), (std::vector<std::string>{"step-00000005", "step-00000010", "step-notes"}));
}

TEST_F(CheckpointTest, ADamagedOneIsPassedOverWithAWarning) {
    const fs::path good = write(5), bad = write(10);
    const auto expect_fall_back = [&](const std::vector<std::string>& parts) {
        EXPECT_EQ(latest(), good);
        ASSERT_EQ(warnings_.size(), 1u);
        expect_parts(warnings_[0], parts);
        expect_parts(warnings_[0], {"using", good.string()});
        EXPECT_THROW(read_checkpoint(bad), Error);
        write(10);
    };
    cut(bad / "state.safetensors");
    expect_fall_back({"step-00000010", "truncated"});
    flip(bad / "state.safetensors");
    expect_fall_back({"step-00000010", "damaged", "checksum"});
    cut(bad / "checkpoint.json");
    cut(bad / "checkpoint.json");
    expect_fall_back({"step-00000010", "checkpoint.json", "damaged"});
    fs::remove(bad / "state.safetensors");
    expect_fall_back({"state.safetensors"});
    write_file(bad / "checkpoint.json", R"({"format": "convoy checkpoint", "version": 99})");
    expect_fall_back({"version 1", "99"});
    write_file(bad / "checkpoint.json", R"({"format": "convoy checkpoint", "version": 1})");
    expect_fall_back({"\"state\"", "missing"});
    write_file(bad / "state.safetensors", "");
    expect_fall_back({"truncated", "found 0"});
}

// A run that fell back to step 5 goes on; the damaged later one must not count as one of those to keep.
TEST_F(CheckpointTest, ADamagedLaterOneGivesWayToTheNextWrite) {
    write(5);
    cut(write(10) / "state.safetensors");
    write(7, 1);
    EXPECT_EQ(names(), (std::vector<std::string>{"step-00000007"}));
}

TEST_F(CheckpointTest, AllDamagedIsAnErrorAndNoneIsNothing) {
    EXPECT_EQ(latest(), std::nullopt);
    cut(write(5) / "state.safetensors");
    expect_parts(error_of([&] { latest(); }), {"none of the 1 checkpoints", "step-00000005", "truncated"});
}

TEST_F(CheckpointTest, AnotherModelIsRefusedByTensorAndTheStateStays) {
    const fs::path path = write(5);
    const auto other = session_of("lenet5", Rule::Momentum, 6);
    const Tensor before = other->state().read("conv1.weight");
    other->state().write("conv1.weight", Tensor(before.shape(), DType::f32));
    expect_parts(error_of([&] { load_state(path, other->state()); }), {path.string(), "another shape", "fc3.weight", "4x84", "6x84"});
    EXPECT_TRUE(other->state().read("conv1.weight") == Tensor(before.shape(), DType::f32));
    const auto adam = session_of("lenet5", Rule::Adam);
    expect_parts(error_of([&] { load_state(path, adam->state()); }),
                 {"missing: optimizer.conv1.weight.mean", "unexpected: ", "optimizer.conv1.weight.momentum", "more"});
    EXPECT_NO_THROW(load_weights(path, adam->state(), {}));  // the model itself is the same
}

TEST_F(CheckpointTest, WeightsComeFromAFileACheckpointOrARun) {
    const fs::path path = write(5);
    write(10);
    EXPECT_EQ(weights_file(dir_), dir_ / "checkpoints" / "step-00000010" / "state.safetensors");
    EXPECT_EQ(weights_file(path), path / "state.safetensors");
    EXPECT_EQ(weights_file(path / "state.safetensors"), path / "state.safetensors");
    EXPECT_EQ(config_of_weights(dir_), small_config());
    EXPECT_EQ(config_of_weights(path / "state.safetensors"), std::nullopt);
    expect_parts(error_of([&] { weights_file(dir_ / "none"); }), {"none", "no such"});
    fs::create_directories(dir_ / "empty");
    expect_parts(error_of([&] { weights_file(dir_ / "empty"); }), {"empty", "without checkpoints"});
    cut(path / "state.safetensors");
    expect_parts(error_of([&] { weights_file(path); }), {"truncated"});
}

TEST_F(CheckpointTest, AFullDiskLeavesTheLastGoodOne) {
    const fs::path good = write(5);
    {
        const FullDisk limit(20000);
        expect_parts(error_of([&] { write(10); }),
                     {"step 10 could not be written", "state.safetensors", "the last good one is " + good.string()});
    }
    EXPECT_EQ(names(), (std::vector<std::string>{"step-00000005"}));
    EXPECT_EQ(latest(), good);
    EXPECT_TRUE(warnings_.empty());
    write(10);
    EXPECT_EQ(names().size(), 2u);
}

TEST_F(CheckpointTest, NumbersThatAreNotFiniteAreNotKept) {
    write(5);
    Tensor weight = session_->state().read("fc2.weight");
    weight.as<float>()[3] = NAN;
    session_->state().write("fc2.weight", weight);
    expect_parts(error_of<NonFiniteError>([&] { write(10); }), {"fc2.weight", "not finite"});
    EXPECT_EQ(names(), (std::vector<std::string>{"step-00000005"}));
}

// A process that does nothing but write checkpoints is killed at random moments, over and over, in one directory.
TEST_F(CheckpointTest, KilledAtAnyMomentTheLastGoodOneLoads) {
    const RandomStream random{3, 0, stream_of("kill")};
    int64_t newest = 0;
    write(newest, 1);
    for (int round = 0; round < test_count(12, 50); ++round) {
        const pid_t child = ::fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            try {
                for (int64_t step = newest + 1;; ++step)
                    for (int again = step % 3 == 0 ? 2 : 1; again > 0; --again) write(step, 1);  // some twice in their place
            } catch (...) {
                ::_exit(3);
            }
        }
        ::usleep(static_cast<useconds_t>(1000 + 60000 * random.uniform(static_cast<uint64_t>(round))));
        ::kill(child, SIGKILL);
        int status = 0;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        ASSERT_TRUE(WIFSIGNALED(status)) << "the child ended by itself: " << status;
        const auto path = latest();
        ASSERT_TRUE(path) << "round " << round;
        EXPECT_TRUE(warnings_.empty()) << warnings_[0];
        const int64_t step = read_checkpoint(*path).progress.step;
        EXPECT_GE(step, newest);
        newest = step;
        ASSERT_NO_THROW(load_state(*path, session_->state()));
    }
    EXPECT_GT(newest, 0);
}

TEST(Checksum, SeesEveryByteAndTheLength) {
    const std::string text = "some bytes of a file, more than a word";
    for (size_t i = 0; i < text.size(); ++i) {
        std::string other = text;
        other[i] = static_cast<char>(other[i] ^ 0x80);
        EXPECT_NE(checksum(text), checksum(other)) << i;
    }
    EXPECT_NE(checksum(text), checksum(text + '\0'));
    EXPECT_NE(checksum(""), checksum(std::string(8, '\0')));
    EXPECT_EQ(checksum_text("").size(), 16u);
}

using RunDirectoryTest = TrainTest;

TEST_F(RunDirectoryTest, OneProcessAtATime) {
    {
        const RunDirectory run(dir_ / "deep" / "run");
        EXPECT_TRUE(fs::is_directory(dir_ / "deep" / "run" / "checkpoints"));
        expect_parts(error_of([&] { RunDirectory(dir_ / "deep" / "run"); }), {"another process", "deep/run"});
    }
    EXPECT_NO_THROW(RunDirectory(dir_ / "deep" / "run"));
}

TEST_F(RunDirectoryTest, OneThatCannotBeWrittenIsRefused) {
    write_file(dir_ / "file", "");
    expect_parts(error_of([&] { RunDirectory(dir_ / "file" / "run"); }), {"cannot create the run directory", "file/run"});
    if (::geteuid() == 0) return;  // root may write anywhere
    fs::create_directories(dir_ / "locked" / "checkpoints");
    fs::permissions(dir_ / "locked", fs::perms::owner_read | fs::perms::owner_exec);
    expect_parts(error_of([&] { RunDirectory(dir_ / "locked"); }), {"cannot be written", "locked", "Permission denied"});
    fs::permissions(dir_ / "locked", fs::perms::owner_all);
}

TEST_F(RunDirectoryTest, LeftoversOfKilledWritesGo) {
    write_file(dir_ / "config.json.tmp123", "half");
    write_file(dir_ / "notes.tmp1b", "mine");
    const RunDirectory run(dir_);
    EXPECT_FALSE(fs::exists(dir_ / "config.json.tmp123"));
    EXPECT_TRUE(fs::exists(dir_ / "notes.tmp1b"));
}

}  // namespace
}  // namespace convoy
