// What training reads: the same samples and augmentations whoever reads them and wherever a run goes on, each rank its own part, and no byte twice.
#include <cmath>
#include <map>
#include <mutex>

#include "base/test_count.h"
#include "comm/thread_world.h"
#include "data/hdf5/hdf5.h"
#include "data/jpeg/jpeg.h"
#include "kernels/backend.h"
#include "train/checksum.h"
#include "train/plan_choice.h"
#include "train/task.h"
#include "train/testing.h"
#include "train/weights.h"

namespace convoy {
namespace {

namespace fs = std::filesystem;

class ReadingTest : public TrainTest {
  protected:
    void SetUp() override {
        if (!has_jpeg() || !has_hdf5()) GTEST_SKIP() << "this build lacks libjpeg-turbo or HDF5";
        TrainTest::SetUp();
    }
    // 21 pictures to train on (in batches of 8 the last has 5) and 4 to test, of several sizes.
    void put_pictures() const {
        for (int i = 0; i < 25; ++i) {
            const fs::path file = dir_ / "data" / (i < 21 ? "train" : "test") / (i % 2 ? "odd" : "even") / fmt::format("{:02}.jpg", i);
            fs::create_directories(file.parent_path());
            Pixels pixels;
            pixels.resize({24 + i % 7, 20 + i % 5});
            for (int64_t y = 0; y < pixels.size.height; ++y)
                for (int64_t x = 0; x < 3 * pixels.size.width; ++x)
                    pixels.row(y)[x] = static_cast<uint8_t>(128 + 100 * std::sin(0.1 * static_cast<double>((i % 2 ? x : 3 * y) + i)));
            write_file(file, encode_jpeg(pixels, 95));
        }
    }
    // 5 volumes to train on and 2 to test, with a label for each voxel or two numbers to predict.
    void put_volumes(bool voxels) const {
        for (int i = 0; i < 7; ++i) {
            const fs::path file = dir_ / "data" / (i < 5 ? "train" : "test") / fmt::format("{}.h5", i);
            fs::create_directories(file.parent_path());
            Tensor x(Shape{1, 16, 16, 16}, DType::f32), labels(Shape{16, 16, 16}, DType::u8), numbers(Shape{4}, DType::f32);
            for (size_t k = 0; k < 4096; ++k) {
                x.as<float>()[k] = static_cast<float>(std::sin(0.37 * static_cast<double>(k) + i));
                labels.as<uint8_t>()[k] = x.as<float>()[k] > 0;
            }
            for (size_t k = 0; k < 4; ++k) numbers.as<float>()[k] = static_cast<float>(0.1 * i + 0.2 * static_cast<double>(k));
            Hdf5Writer writer(file);
            writer.write("x", x);
            writer.write("y", voxels ? labels : numbers);
            if (voxels) writer.attribute("y", "classes", 2);
            writer.commit();
        }
    }
    TrainConfig pictures_config() const {
        TrainConfig config{.model = "resnet20", .input = {3, 16, 16}, .epochs = 2, .batch = 8, .seed = 5, .log_every = 1};
        config.data.name = (dir_ / "data").string();
        config.data.augment = "random-resized-crop,flip,jitter:0.2";
        config.data.workers = 2;
        config.schedule.lr = 0.01;
        return config;
    }
    TrainConfig volumes_config(const char* model) const {
        TrainConfig config{.model = model, .epochs = 2, .batch = 2, .seed = 5, .log_every = 1};
        config.data.name = (dir_ / "data").string();
        config.data.augment = "flip,rot90";
        config.schedule.lr = 1e-3;
        return config;
    }
};

TrainConfig under(TrainConfig config, const std::string& plan) {
    const PlanChoice choice = plan_choice(plan, 0);
    config.ranks = choice.ranks;
    config.plan = text_of(choice);
    return config;
}

using Sums = std::map<BatchPosition, std::pair<std::string, std::string>>;  // of inputs and targets of whole batches

// Everything that the ranks of a plan read of the epochs from `start` on, put together again.
Sums batches_under(const TrainConfig& given, BatchPosition start = {}) {
    std::map<BatchPosition, std::pair<Tensor, Tensor>> whole;
    std::mutex mutex;
    ThreadWorld world(given.ranks);
    run_ranks(world, [&](Transport& transport) {
        Link link(transport, std::chrono::seconds(60));
        const Task task = open_task(given);
        const TrainConfig& config = task.config;
        Session session(session_options(config, config.ranks > 1 ? &link : nullptr));
        const BatchOrder order(task.train->size(), config.batch, config.seed, true);
        const auto load = [&](int64_t samples) {
            return std::make_unique<BatchProgram>(session, training_graph_of(config, samples), samples,
                                                  micro_batches_for(samples, config.micro_batches));
        };
        const auto full = load(order.batch_size()), last = load(order.samples() % order.batch_size());
        Prefetcher batches(
            *task.train, order,
            {.workers = data_workers(config), .start = start, .end_epoch = config.epochs, .full = full->part(), .last = last->part()});
        while (const Batch* batch = batches.next()) {
            const BatchPart& part = batch->count == order.batch_size() ? full->part() : last->part();
            const std::lock_guard lock(mutex);
            auto& [input, target] = whole[batch->position];
            const auto merge = [&](const TensorPart& of, const Tensor& rows, const Shape& shape, Tensor& into) {
                if (!into.data()) into = Tensor(join({batch->count}, shape), rows.dtype());
                for (size_t r = 0; r < of.rows.size(); ++r) {
                    const Box from{join({static_cast<int64_t>(r)}, Dims::filled(shape.size(), 0)), join({1}, of.box.shape)};
                    put_part(into, {join({of.rows[r]}, of.box.origin), join({1}, of.box.shape)}, part_of(rows, from));
                }
            };
            merge(part.input, batch->input, task.train->info().input, input);
            merge(part.target, batch->target, task.train->info().target_shape, target);
        }
    });
    Sums sums;
    const auto text = [](const Tensor& tensor) {
        return checksum_text({reinterpret_cast<const char*>(tensor.data()), static_cast<size_t>(tensor.bytes())});
    };
    for (const auto& [position, tensors] : whole) sums[position] = {text(tensors.first), text(tensors.second)};
    return sums;
}

TEST_F(ReadingTest, TheSameGlobalBatchesOnAnyRanks) {
    put_pictures();
    const TrainConfig config = pictures_config();
    const Sums one = batches_under(config);
    EXPECT_EQ(one.size(), 6u);
    EXPECT_NE(one.at({0, 0}), one.at({1, 0}));
    for (const char* plan : {"sample:2", "sample:4", "sample:2,height:2", "height:2"})
        EXPECT_EQ(batches_under(under(config, plan)), one) << plan;
    TrainConfig threads = config;
    threads.data.workers = 5;
    EXPECT_EQ(batches_under(threads), one);
    threads.micro_batches = 2;
    EXPECT_EQ(batches_under(under(threads, "sample:3")), one);
}

TEST_F(ReadingTest, TheSameVolumesOnAnyRanks) {
    put_volumes(true);
    const TrainConfig config = volumes_config("unet3d");
    const Sums one = batches_under(config);
    std::vector<std::string> plans{"depth:2", "sample:2,width:2"};
    if (test_count(0, 1) > 0) plans.insert(plans.end(), {"sample:2", "sample:2,depth:2", "height:2,width:2"});
    for (const std::string& plan : plans) EXPECT_EQ(batches_under(under(config, plan)), one) << plan;
}

TEST_F(ReadingTest, FromAnyBatchOn) {
    put_pictures();
    const TrainConfig config = pictures_config();
    const Sums all = batches_under(config);
    for (const BatchPosition start : {BatchPosition{0, 2}, BatchPosition{1, 1}}) {
        const Sums rest = batches_under(under(config, "sample:2"), start);
        EXPECT_EQ(rest, Sums(all.find(start), all.end()));
    }
}

// A run that was stopped in the middle of an epoch sees the pictures of one that was not, cut and turned alike: the weights are the same bytes.
TEST_F(ReadingTest, AResumedRunSeesTheSameAugmentations) {
    put_pictures();
    TrainConfig whole = pictures_config(), parts = whole;
    whole.run_dir = (dir_ / "whole").string();
    parts.run_dir = (dir_ / "parts").string();
    run(whole);
    Recorder first(2), second(4);
    run(parts, first);
    run(parts, second, true);
    run(parts, true);
    EXPECT_TRUE(read_file(weights_file(whole.run_dir)) == read_file(weights_file(parts.run_dir)));
    parts.data.augment = "flip";
    expect_parts(error_of([&] { run(parts, true); }), {"cannot resume", "data.augment"});
}

std::vector<std::unique_ptr<Recorder>> train_ranks(const TrainConfig& config) {
    std::vector<std::unique_ptr<Recorder>> recorders;
    for (int r = 0; r < config.ranks; ++r) recorders.push_back(std::make_unique<Recorder>());
    ThreadWorld world(config.ranks);
    run_ranks(world, [&](Transport& transport) {
        Link link(transport, std::chrono::seconds(60));
        train(config, {.link = config.ranks > 1 ? &link : nullptr}, *recorders[static_cast<size_t>(transport.rank())]);
    });
    return recorders;
}

// 16 voxels deep: a rank has 8 of them and, for a kernel of 3, one more of its neighbour. Labels need no halo. A byte each for labels, four for values.
TEST_F(ReadingTest, UnderASpatialPlanARankReadsItsSlab) {
    put_volumes(true);
    constexpr int64_t kPlane = 16 * 16, kSamples = 3;
    TrainConfig config = volumes_config("unet3d");
    config.epochs = 1;
    config.validate = false;
    config.data.most_train = kSamples;
    for (const BackendStatus& status : backend_statuses())
        if (status.name == "cpu" && status.ready) config.backend = "cpu";  // the reference takes long for volumes
    Recorder one;
    run(config, one);
    EXPECT_EQ(one.epochs[0].read_bytes, kSamples * 16 * kPlane * 5);
    const auto two = train_ranks(under(config, "depth:2"));
    for (const auto& rank : two)
        for (const EpochReport& epoch : rank->epochs) {
            EXPECT_EQ(epoch.read_bytes, kSamples * (9 * kPlane * 4 + 8 * kPlane));
            EXPECT_EQ(epoch.read_bytes_of_all, 2 * epoch.read_bytes);
        }
    EXPECT_NEAR(two[0]->steps[0].loss, one.steps[0].loss, 1e-4);
}

TEST_F(ReadingTest, UnderASamplePlanARankReadsItsSamples) {
    put_volumes(false);
    constexpr int64_t kEach = 16 * 16 * 16 * 4 + 4 * 4;
    TrainConfig config = volumes_config("cosmoflow64");
    config.input = {1, 16, 16, 16};
    config.data.augment = "flip";
    Recorder one;
    run(config, one);
    EXPECT_EQ(one.epochs[0].read_bytes, 5 * kEach);
    const auto two = train_ranks(under(config, "sample:2"));
    EXPECT_EQ(two[0]->epochs[0].read_bytes, 3 * kEach);  // of two, two and one
    EXPECT_EQ(two[1]->epochs[0].read_bytes, 2 * kEach);
    EXPECT_EQ(two[1]->epochs[0].read_bytes_of_all, 5 * kEach);
}

TEST_F(ReadingTest, CorruptPicturesAreCountedOverAllRanks) {
    put_pictures();
    for (const char* name : {"train/odd/03.jpg", "train/even/08.jpg", "test/odd/21.jpg"})
        write_file(dir_ / "data" / name, "\xff\xd8\xff what?");
    TrainConfig config = pictures_config();
    Recorder one;
    const TrainResult result = run(config, one);
    EXPECT_EQ(result.skipped, 3);
    EXPECT_EQ(one.epochs[1].skipped, 3);
    const auto two = train_ranks(under(config, "sample:2"));
    EXPECT_GE(two[0]->epochs[1].skipped, 3);
    EXPECT_EQ(batches_under(under(config, "sample:2")), batches_under(config));  // with the same pictures in their places
    config.data.strict = true;
    const std::string message = error_of([&] { run(config); });
    EXPECT_TRUE(message.find("03.jpg") != std::string::npos || message.find("08.jpg") != std::string::npos) << message;
    EXPECT_NE(message.find("corrupt JPEG"), std::string::npos) << message;
}

}  // namespace
}  // namespace convoy
