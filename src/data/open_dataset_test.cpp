#include "data/open_dataset.h"

#include <cstdlib>

#include "data/idx.h"
#include "data/synthetic.h"
#include "data/test_files.h"

namespace convoy {
namespace {

class OpenDatasetTest : public DataFilesTest {
  protected:
    void TearDown() override {
        ::unsetenv("CONVOY_DATA");
        DataFilesTest::TearDown();
    }
    void put_images(const std::filesystem::path& directory, int64_t count, int64_t side) const {
        std::filesystem::create_directories(directory);
        for (const char* split : {"train", "t10k"}) {
            write_file(directory / (split + std::string("-images-idx3-ubyte")), encode_idx(Tensor(Shape{count, side, side}, DType::u8)));
            write_file(directory / (split + std::string("-labels-idx1-ubyte")), encode_idx(Tensor(Shape{count}, DType::u8)));
        }
    }
};

TEST_F(OpenDatasetTest, MnistIsLookedForInOrder) {
    EXPECT_EQ(open_dataset("mnist", Split::Test, {})->size(), 10000);  // of the source tree
    put_images(dir_ / "variable" / "mnist", 3, 28);
    ::setenv("CONVOY_DATA", (dir_ / "variable").c_str(), 1);
    EXPECT_EQ(open_dataset("mnist", Split::Test, {})->size(), 3);
    put_images(dir_ / "given" / "mnist", 4, 28);
    EXPECT_EQ(open_dataset("mnist", Split::Test, {.data = dir_ / "given"})->size(), 4);
    EXPECT_EQ(open_dataset("mnist", Split::Train, {.data = dir_ / "given" / "mnist"})->size(), 4);
    ::setenv("CONVOY_DATA", (dir_ / "empty").c_str(), 1);
    EXPECT_EQ(open_dataset("mnist", Split::Test, {})->size(), 10000);
    const auto places = mnist_places({});
    ASSERT_EQ(places.size(), 3u);
    EXPECT_EQ(places[0], dir_ / "empty" / "mnist");
}

TEST_F(OpenDatasetTest, MessagesSayWhereItLooked) {
    const std::string message = error_of([&] { open_dataset("mnist", Split::Train, {.data = dir_ / "nowhere"}); });
    expect_parts(message, {"mnist", "train-images-idx3-ubyte.gz", "nowhere\n", "nowhere/mnist"});
    expect_parts(error_of([&] { open_dataset("mnits", Split::Train, {}); }),
                 {"unknown dataset \"mnits\"", "synthetic", "did you mean \"mnist\"?"});
    std::filesystem::create_directories(dir_ / "none");
    expect_parts(error_of([&] { open_dataset((dir_ / "none").string(), Split::Train, {}); }), {"images-idx3-ubyte", "an empty directory"});
    expect_parts(error_of([&] { open_dataset(put("file", "x").string(), Split::Train, {}); }), {"file", "directory"});
}

TEST_F(OpenDatasetTest, ADirectoryOfIdxFiles) {
    put_images(dir_, 5, 7);
    const auto data = open_dataset(dir_.string(), Split::Train, {.classes = 2});
    EXPECT_EQ(data->info(), (DatasetInfo{dir_.string(), {1, 7, 7}, TargetKind::Class, {}, 2, {}, "normalize mnist"}));
    EXPECT_EQ(data->size(), 5);
}

TEST_F(OpenDatasetTest, SyntheticSplitsShareNoSample) {
    DatasetOptions options;
    options.synthetic = {.info = {"synthetic", {1, 6}, TargetKind::Class, {}, 3}, .train = 10, .test = 4, .seed = 2, .signal = 1.0};
    const auto train = open_dataset("synthetic", Split::Train, options), test = open_dataset("synthetic", Split::Test, options);
    const auto all = make_synthetic(options.synthetic.info, 14, 2, 1.0);
    EXPECT_EQ(train->size(), 10);
    EXPECT_EQ(test->size(), 4);
    const auto sample = [](const Dataset& data, int64_t index) {
        Tensor input = make_input(data.info(), 1, DType::f32), target = make_target(data.info(), 1, DType::f32);
        data.read(std::vector<int64_t>{index}, input, target);
        return input;
    };
    EXPECT_EQ(sample(*train, 9), sample(*all, 9));
    EXPECT_EQ(sample(*test, 0), sample(*all, 10));
    EXPECT_THROW(sample(*test, 4), Bug);
}

TEST_F(OpenDatasetTest, AtMostSoManySamples) {
    EXPECT_EQ(open_dataset("mnist", Split::Test, {.most = 7})->size(), 7);
    EXPECT_EQ(open_dataset("mnist", Split::Test, {.most = 20000})->size(), 10000);
    EXPECT_THROW(open_dataset("mnist", Split::Test, {.most = -1}), Error);
}

}  // namespace
}  // namespace convoy
