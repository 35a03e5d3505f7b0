// Every kind of dataset as files: what is found, what is read, whole and in part, and what is refused.
#include <cmath>
#include <set>

#include <zlib.h>

#include "base/json.h"
#include "data/archive/archive.h"
#include "data/array_dataset.h"
#include "data/hdf5/hdf5.h"
#include "data/image_dataset.h"
#include "data/jpeg/jpeg.h"
#include "data/npy.h"
#include "data/open_dataset.h"
#include "data/png/png.h"
#include "data/resample.h"
#include "data/test_archives.h"
#include "data/test_files.h"

namespace convoy {
namespace {

namespace fs = std::filesystem;

// Smooth, and another for every number.
Pixels picture(int64_t width, int64_t height, int number) {
    Pixels pixels;
    pixels.resize({width, height});
    for (int64_t y = 0; y < height; ++y)
        for (int64_t x = 0; x < width; ++x)
            for (int64_t c = 0; c < 3; ++c)
                pixels.row(y)[3 * x + c] =
                    static_cast<uint8_t>(128 + 90 * std::sin(0.07 * static_cast<double>((number % 5 + 1) * x + c * y) + number) *
                                                   std::cos(0.05 * static_cast<double>(y)));
    return pixels;
}

struct Sample {
    Tensor input, target;
    int64_t bytes = 0;
    bool operator==(const Sample& other) const { return input == other.input && target == other.target; }
};

Sample read_box(const Dataset& data, SampleId id, const Box& input, const Box& target, DType type = DType::f32) {
    Sample sample{Tensor(input.shape, type), Tensor(target.shape, target_type(data.info(), type))};
    const auto scratch = data.make_scratch();
    sample.bytes = data.read_sample(
        id, {.type = type, .input_box = input, .target_box = target, .input = sample.input.data(), .target = sample.target.data()},
        scratch.get());
    return sample;
}

Sample read_whole(const Dataset& data, SampleId id, DType type = DType::f32) {
    return read_box(data, id, Box::whole(data.info().input), Box::whole(data.info().target_shape), type);
}

int32_t label_of(const Sample& sample) { return sample.target.as<int32_t>()[0]; }

Box random_box(const Shape& shape, const RandomStream& random, uint64_t& next) {
    Box box = Box::whole(shape);
    for (int d = 0; d < shape.size(); ++d) {
        const auto a = static_cast<int64_t>(random.uniform(next++) * static_cast<double>(shape[d]));
        const auto b = static_cast<int64_t>(random.uniform(next++) * static_cast<double>(shape[d]));
        box = box.with(d, std::min(a, b), std::max(a, b) + 1);
    }
    return box;
}

// Whatever is done to samples, a box of one is a box of the whole; and an epoch repeats itself.
void expect_boxes_of_the_whole(const Dataset& data, int boxes = 6) {
    const RandomStream random{5, 0, stream_of("boxes")};
    uint64_t next = 0;
    for (const int64_t epoch : {0, 1, 7})
        for (int64_t index = 0; index < std::min<int64_t>(3, data.size()); ++index)
            for (const DType type : {DType::f32, DType::f64}) {
                const Sample whole = read_whole(data, {index, epoch}, type);
                EXPECT_EQ(whole, read_whole(data, {index, epoch}, type));
                for (int i = 0; i < boxes; ++i) {
                    const Box input = random_box(data.info().input, random, next),
                              target = random_box(data.info().target_shape, random, next);
                    const Sample part = read_box(data, {index, epoch}, input, target, type);
                    EXPECT_EQ(part.input, part_of(whole.input, input)) << to_string(input) << " of sample " << index << ", epoch " << epoch;
                    EXPECT_EQ(part.target, part_of(whole.target, target)) << to_string(target);
                }
            }
}

class DatasetsTest : public DataFilesTest {
  protected:
    void SetUp() override {
        if (!has_jpeg() || !has_hdf5() || !has_archives()) GTEST_SKIP() << "this build lacks libjpeg-turbo, HDF5 or libarchive";
        DataFilesTest::SetUp();
    }
    void put_picture(const std::string& name, int64_t width, int64_t height, int number) const {
        fs::create_directories((dir_ / name).parent_path());
        const Pixels pixels = picture(width, height, number);
        put_quickly(name, name.ends_with(".png") ? encode_png(pixels) : encode_jpeg(pixels, 92));
    }
    // Two classes of three pictures to train on, of one to test.
    void put_folders() const {
        for (int i = 0; i < 3; ++i) {
            put_picture(fmt::format("train/cat/{}.jpg", i), 60 + 11 * i, 50, i);
            put_picture(fmt::format("train/ant/{}.png", i), 40, 70 + 9 * i, 10 + i);
        }
        put_picture("val/cat/a.JPEG", 80, 60, 20);
        put_picture("val/ant/b.jpeg", 60, 80, 21);
    }
    std::unique_ptr<Dataset> open(Split split, DatasetOptions options = {}) const { return open_dataset(dir_.string(), split, options); }
    std::string failure(DatasetOptions options = {}) const {
        return error_of([&] { open(Split::Train, options); });
    }
};

TEST(Resample, EqualsTheReference) {
    const RandomStream random{3, 0, stream_of("resample")};
    uint64_t next = 0;
    const auto number = [&](double low, double high) { return low + (high - low) * random.uniform(next++); };
    const int rounds = test_count(30, 300);
    for (int round = 0; round < rounds; ++round) {
        const Pixels source = picture(static_cast<int64_t>(number(1, 60)), static_cast<int64_t>(number(1, 60)), round);
        const ImageSize to{static_cast<int64_t>(number(1, 40)), static_cast<int64_t>(number(1, 40))};
        SourceRect rect{number(0, 0.8) * static_cast<double>(source.size.width), number(0, 0.8) * static_cast<double>(source.size.height),
                        0, 0};
        rect.width = number(0.1, 1) * (static_cast<double>(source.size.width) - rect.x);
        rect.height = number(0.1, 1) * (static_cast<double>(source.size.height) - rect.y);
        std::vector<float> fast(static_cast<size_t>(3 * to.width * to.height)), slow(fast.size());
        Resampler().run(source, rect, to, fast.data());
        resample_reference(source, rect, to, slow.data());
        for (size_t i = 0; i < fast.size(); ++i) ASSERT_NEAR(fast[i], slow[i], 1e-3) << "round " << round << ", " << i;
    }
}

TEST_F(DatasetsTest, ImageFolder) {
    put_folders();
    put("train/cat/notes.txt", "no picture");
    EXPECT_EQ(dataset_kind(dir_.string()), DataKind::Images);
    const auto train = open(Split::Train, {.size = {32, 24}}), test = open(Split::Test, {.size = {32, 24}});
    EXPECT_EQ(train->size(), 6);
    EXPECT_EQ(test->size(), 2);
    EXPECT_EQ(train->info().input, (Shape{3, 32, 24}));
    EXPECT_EQ(train->info().class_names, (std::vector<std::string>{"ant", "cat"}));
    EXPECT_EQ(train->info().transforms, "random-resized-crop,flip 32x24, normalize imagenet");
    EXPECT_EQ(test->info().transforms, "resize 32, centre-crop 32x24, normalize imagenet");
    EXPECT_EQ(label_of(read_whole(*train, {2, 0})), 0);
    EXPECT_EQ(label_of(read_whole(*train, {3, 0})), 1);
    EXPECT_EQ(label_of(read_whole(*test, {1, 0})), 1);
    expect_parts(train->describe(4), {"cat/1.jpg", "71x50"});
    expect_boxes_of_the_whole(*train);
    expect_boxes_of_the_whole(*test);
    // Training sees another part in every epoch, testing the same; other seeds see other parts.
    EXPECT_FALSE(read_whole(*train, {4, 0}) == read_whole(*train, {4, 1}));
    EXPECT_TRUE(read_whole(*test, {1, 0}) == read_whole(*test, {1, 1}));
    EXPECT_FALSE(read_whole(*open(Split::Train, {.size = {32, 24}, .seed = 2}), {4, 0}) == read_whole(*train, {4, 0}));
    EXPECT_EQ(read_whole(*train, {4, 0}).bytes, static_cast<int64_t>(fs::file_size(dir_ / "train/cat/1.jpg")));
    for (const char* augment : {"random-crop,flip", "jitter:0.3", "none"}) {
        const auto other = open(Split::Train, {.augment = augment, .size = {20, 20}});
        expect_boxes_of_the_whole(*other, 2);
        const Sample sample = read_whole(*other, {1, 1});
        for (const float value : sample.input.as<float>()) ASSERT_LT(std::abs(value), 3);
    }
}

// What comes out of a centre crop is the picture itself when nothing has to be resized.
TEST_F(DatasetsTest, CentreCropAndFlipOfAPng) {
    put_picture("train/a/0.png", 20, 10, 3);
    put_picture("test/a/0.png", 20, 10, 3);
    const auto data = open(Split::Test, {.normalize = "none", .size = {10, 12}, .resize = 10});
    const Pixels pixels = picture(20, 10, 3);
    const Sample sample = read_whole(*data, {0, 0});
    for (int64_t c = 0; c < 3; ++c)
        for (int64_t y = 0; y < 10; ++y)
            for (int64_t x = 0; x < 12; ++x)
                ASSERT_NEAR(sample.input.as<float>()[static_cast<size_t>((c * 10 + y) * 12 + x)], pixels.row(y)[3 * (x + 4) + c] / 255.0,
                            1e-6);
    const auto flipping = open(Split::Train, {.augment = "flip", .normalize = "none", .size = {10, 12}, .resize = 10});
    int flipped = 0;
    for (int64_t epoch = 0; epoch < 40; ++epoch) {
        const Sample seen = read_whole(*flipping, {0, epoch});
        if (seen == sample) continue;
        ++flipped;
        for (size_t x = 0; x < 12; ++x) ASSERT_EQ(seen.input.as<float>()[x], sample.input.as<float>()[11 - x]);
    }
    EXPECT_GT(flipped, 8);
    EXPECT_LT(flipped, 32);
}

TEST_F(DatasetsTest, CorruptPicturesAreCountedNamedAndSkipped) {
    put_folders();
    const std::string whole = read_file(dir_ / "train/cat/1.jpg");
    put_quickly("train/cat/1.jpg", whole.substr(0, whole.size() / 2));
    put_quickly("train/ant/0.png", "");
    put_quickly("train/ant/2.png", "GIF89a, not ours");
    const auto data = open(Split::Train, {.augment = "none", .size = {16, 16}});
    EXPECT_TRUE(data->skipped().empty());
    std::set<int32_t> labels;
    for (int64_t i = 0; i < 6; ++i) labels.insert(label_of(read_whole(*data, {i, 0})));
    EXPECT_EQ(labels, (std::set<int32_t>{0, 1}));
    const auto skipped = data->skipped();
    ASSERT_EQ(skipped.size(), 3u);
    expect_parts(skipped[0].why, {"ant/0.png", "empty"});
    expect_parts(skipped[1].why, {"ant/2.png", "neither JPEG nor PNG"});
    expect_parts(skipped[2].why, {"cat/1.jpg", "corrupt JPEG", "premature end"});
    // The same picture stands in for it whoever reads, and whatever was read before.
    const Sample stand_in = read_whole(*open(Split::Train, {.augment = "none", .size = {16, 16}}), {4, 0});
    EXPECT_EQ(stand_in, read_whole(*data, {4, 0}));
    const auto strict = open(Split::Train, {.size = {16, 16}, .strict = true});
    expect_parts(error_of([&] { read_whole(*strict, {4, 0}); }), {"cat/1.jpg", "corrupt JPEG"});
    for (const char* name : {"train/cat/0.jpg", "train/cat/2.jpg", "train/ant/1.png"}) put_quickly(name, "x");
    expect_parts(error_of([&] { read_whole(*open(Split::Train, {.size = {16, 16}}), {4, 0}); }), {"none of the pictures"});
}

TEST_F(DatasetsTest, FoldersWithoutATestSplit) {
    for (int i = 0; i < 12; ++i) put_picture(fmt::format("{}/{:02}.jpg", i < 6 ? "a" : "b", i), 30, 30, i);
    const auto train = open(Split::Train, {.augment = "none", .size = {16, 16}}), test = open(Split::Test, {.size = {16, 16}});
    EXPECT_EQ(train->size(), 11);
    EXPECT_EQ(test->size(), 1);
    expect_parts(test->describe(0), {"09.jpg"});
    expect_parts(train->describe(9), {"10.jpg"});
    // A picture for testing has no stand-in among those for training.
    put_quickly("b/09.jpg", "");
    expect_parts(error_of([&] { read_whole(*open(Split::Test, {.size = {16, 16}}), {0, 0}); }), {"none of the pictures"});
}

TEST_F(DatasetsTest, TarShards) {
    const auto sample = [&](int number, const std::string& label) {
        const std::string key = fmt::format("dir/{:04}", number);
        return tar_entry(key + ".jpg", encode_jpeg(picture(40, 30, number), 90)) + label;
    };
    const auto cls = [](int number, const char* text) { return tar_entry(fmt::format("dir/{:04}.cls", number), text); };
    const std::string end(1024, '\0');
    put("train-000.tar", sample(0, cls(0, "2\n")) + sample(1, tar_entry("dir/0001.json", R"({"label": 1})")) + end);
    put("train-001.tar", sample(2, cls(2, "0")) + end);
    put("test-000.tar", sample(3, cls(3, "1")) + end);
    put("classes.txt", "red\ngreen\nblue\n");
    EXPECT_EQ(dataset_kind(dir_.string()), DataKind::Tar);
    const auto train = open(Split::Train, {.size = {16, 16}});
    EXPECT_EQ(train->size(), 3);
    EXPECT_EQ(train->info().class_names, (std::vector<std::string>{"red", "green", "blue"}));
    EXPECT_EQ(label_of(read_whole(*train, {0, 0})), 2);
    EXPECT_EQ(label_of(read_whole(*train, {1, 0})), 1);
    EXPECT_EQ(open(Split::Test)->size(), 1);
    expect_boxes_of_the_whole(*train, 2);
    put("train-001.tar", sample(2, "") + end);
    expect_parts(failure(), {"train-001.tar", "dir/0002", "no label"});
    put("train-001.tar", sample(2, cls(2, "two")) + end);
    expect_parts(failure(), {"dir/0002.cls", "\"two\""});
    put("train-001.tar", sample(2, cls(2, "7")) + end);
    expect_parts(failure(), {"label 7", "0..2"});
    fs::remove(dir_ / "classes.txt");
    put("train-001.tar", sample(2, cls(2, "2147483647")) + end);  // the largest label, with one class more than fits
    expect_parts(failure(), {"class", "2147483648"});
}

TEST_F(DatasetsTest, Cifar) {
    const auto record = [](std::vector<int> labels, int first) {
        std::string bytes;
        for (const int label : labels) bytes += static_cast<char>(label);
        for (int i = 0; i < 3072; ++i) bytes += static_cast<char>((first + i) % 256);
        return bytes;
    };
    for (int i = 1; i <= 5; ++i) put(fmt::format("data_batch_{}.bin", i), record({i}, i) + record({9}, 7));
    put("test_batch.bin", record({3}, 0));
    std::string names;
    for (int i = 0; i < 10; ++i) names += fmt::format("class{}\n", i);
    put("batches.meta.txt", names + "\n");
    EXPECT_EQ(dataset_kind(dir_.string()), DataKind::Cifar10);
    const auto train = open(Split::Train), test = open(Split::Test, {.normalize = "none"});
    EXPECT_EQ(train->size(), 10);
    EXPECT_EQ(train->info().input, (Shape{3, 32, 32}));
    EXPECT_EQ(train->info().class_names[9], "class9");
    EXPECT_EQ(train->info().transforms, "random-crop:4,flip, normalize cifar");
    EXPECT_EQ(label_of(read_whole(*train, {2, 0})), 2);
    EXPECT_FLOAT_EQ(read_whole(*test, {0, 0}).input.as<float>()[1], 1.0F / 255);
    expect_boxes_of_the_whole(*train);
    EXPECT_FALSE(read_whole(*train, {2, 0}) == read_whole(*train, {2, 1}));
    put("data_batch_3.bin", record({3}, 0) + "x");
    expect_parts(failure(), {"data_batch_3.bin", "3073", "3074"});
    put("data_batch_3.bin", record({10}, 0));
    expect_parts(failure(), {"data_batch_3.bin", "label 10", "0..9"});
    fs::create_directories(dir_ / "hundred");
    put("hundred/train.bin", record({4, 99}, 0));
    put("hundred/test.bin", record({4, 98}, 0) + record({1, 0}, 2));
    const auto hundred = open_dataset((dir_ / "hundred").string(), Split::Test, {});
    EXPECT_EQ(hundred->info().classes, 100);
    EXPECT_EQ(label_of(read_whole(*hundred, {0, 0})), 98);
}

Tensor counting(const Shape& shape, DType type, int64_t modulo = 1 << 20) {
    Tensor tensor(shape, DType::f64);
    for (int64_t i = 0; i < tensor.numel(); ++i) tensor.as<double>()[static_cast<size_t>(i)] = static_cast<double>(i % modulo);
    return tensor.to(type);
}

TEST_F(DatasetsTest, NpyPairs) {
    for (const char* split : {"train", "test"}) {
        fs::create_directories(dir_ / split);
        write_npy(dir_ / split / "x.npy", counting({4, 2, 6, 5}, DType::f64));
        write_npy(dir_ / split / "y.npy", counting({4}, DType::i64, 3));
    }
    EXPECT_EQ(dataset_kind(dir_.string()), DataKind::Npy);
    const auto data = open(Split::Train, {.augment = "flip"});
    EXPECT_EQ(data->info().input, (Shape{2, 6, 5}));
    EXPECT_EQ(data->info().classes, 3);
    expect_boxes_of_the_whole(*data);
    EXPECT_EQ(label_of(read_whole(*data, {2, 0})), 2);
    // A box takes its own bytes, and no others.
    EXPECT_EQ(read_box(*data, {1, 0}, {{0, 2, 0}, {2, 3, 5}}, Box::whole({})).bytes, 2 * 3 * 5 * 8 + 8);
    write_npy(dir_ / "train" / "y.npy", counting({5}, DType::i64, 3));
    expect_parts(failure(), {"x.npy", "4 of x and 5 of y"});
    write_npy(dir_ / "train" / "y.npy", Tensor::of<int64_t>({4}, {0, 1, -5, 0}));
    expect_parts(failure(), {"sample 2", "label -5"});
    expect_parts(error_of([&] { read_whole(*open(Split::Train, {.classes = 2}), {2, 0}); }), {"sample 2", "label -5", "0..1"});
    write_npy(dir_ / "train" / "y.npy", counting({4, 7}, DType::i32, 3));
    expect_parts(failure(), {"6x5 points", "labels of 7"});
    fs::remove(dir_ / "train" / "y.npy");
    expect_parts(failure(), {"y.npy"});
}

TEST_F(DatasetsTest, Npz) {
    const auto npy = [&](const Tensor& tensor) {
        write_npy(dir_ / "array", tensor);
        const std::string bytes = read_file(dir_ / "array");
        fs::remove(dir_ / "array");
        return bytes;
    };
    const auto x = counting({20, 1, 3, 3}, DType::u8, 256), y = counting({20, 2}, DType::f32);
    for (const bool packed : {false, true}) {
        put("a.npz", zip_file({{"x.npy", npy(x)}, {"y.npy", npy(y)}}, packed));
        const auto data = open_dataset((dir_ / "a.npz").string(), Split::Train, {});
        EXPECT_EQ(data->size(), 18);
        EXPECT_EQ(data->info().target, TargetKind::Regression);
        EXPECT_EQ(data->info().target_shape, (Shape{2}));
        EXPECT_FLOAT_EQ(read_whole(*data, {9, 0}).input.as<float>()[1], 91 / 255.0F);  // sample 10: every tenth is for testing
        EXPECT_EQ(read_whole(*data, {1, 0}).target.as<float>()[1], 3);
    }
    put("a.npz", zip_file({{"x_train.npy", npy(x)}, {"y_train.npy", npy(y)}, {"x_test.npy", npy(x)}, {"y_test.npy", npy(y)}}, true));
    EXPECT_EQ(open_dataset((dir_ / "a.npz").string(), Split::Test, {})->size(), 20);
    put("a.npz", zip_file({{"x.npy", npy(x)}}, false));
    expect_parts(error_of([&] { open_dataset((dir_ / "a.npz").string(), Split::Train, {}); }), {"a.npz", "\"y\""});
    put("a.npz", "nothing of the kind");
    expect_parts(error_of([&] { open_dataset((dir_ / "a.npz").string(), Split::Train, {}); }), {"a.npz"});
}

class VolumesTest : public DatasetsTest {
  protected:
    // A file for each of `count` samples.
    void put_samples(const std::string& folder, int count, const Shape& x, const Shape& y, DType labels) const {
        fs::create_directories(dir_ / folder);
        for (int i = 0; i < count; ++i) {
            Hdf5Writer writer(dir_ / folder / fmt::format("{:03}.h5", i));
            Tensor values = counting(x, DType::f32);
            values.as<float>()[0] = static_cast<float>(1000 * i);
            writer.write("x", values);
            writer.write("y", counting(y, labels, 3));
            if (labels == DType::u8) writer.attribute("y", "classes", 4);
            writer.commit();
        }
    }
};

TEST_F(VolumesTest, AFileForEachSample) {
    put_samples("train", 3, {1, 6, 6, 6}, {6, 6, 6}, DType::u8);
    put_samples("test", 2, {1, 6, 6, 6}, {6, 6, 6}, DType::u8);
    EXPECT_EQ(dataset_kind(dir_.string()), DataKind::Hdf5Samples);
    EXPECT_EQ(open(Split::Train)->info(), (DatasetInfo{dir_.string(), {1, 6, 6, 6}, TargetKind::Voxel, {6, 6, 6}, 4}));
    EXPECT_EQ(open(Split::Test)->size(), 2);
    for (const char* augment : {"none", "flip", "rot90", "flip,rot90", "random-crop,flip,rot90"}) {
        const auto data =
            open(Split::Train, {.augment = augment, .size = std::string(augment).starts_with("random") ? Shape{4, 4, 4} : Shape{}});
        expect_boxes_of_the_whole(*data);
    }
    const auto data = open(Split::Train, {.augment = "rot90"});
    EXPECT_EQ(read_box(*data, {1, 3}, {{0, 2, 0, 0}, {1, 3, 6, 6}}, {{2, 0, 0}, {3, 6, 6}}).bytes, 3 * 36 * 4 + 3 * 36);
    // Labels go where their voxels go: both count alike here.
    const Sample turned = read_whole(*data, {1, 3});
    for (size_t i = 0; i < 216; ++i)
        if (turned.input.as<float>()[i] < 999) {
            ASSERT_EQ(static_cast<int>(turned.input.as<float>()[i]) % 3, turned.target.as<int32_t>()[i]);
        }
}

// All 24 rotations of a cube and no mirror image: the triple product of the three neighbours of a corner keeps its sign.
TEST_F(VolumesTest, Rotations) {
    put_samples("train", 1, {1, 4, 4, 4}, {2}, DType::f32);
    put_samples("test", 1, {1, 4, 4, 4}, {2}, DType::f32);
    for (const bool flips : {false, true}) {
        const auto data = open(Split::Train, {.augment = flips ? "rot90,flip" : "rot90"});
        std::set<std::vector<float>> seen;
        for (int64_t epoch = 0; epoch < 600; ++epoch) {
            const Sample sample = read_whole(*data, {0, epoch});
            const auto values = sample.input.as<float>();
            seen.emplace(values.begin(), values.end());
        }
        EXPECT_EQ(seen.size(), flips ? 48u : 24u);
    }
}

TEST_F(VolumesTest, OneFileForAllSamples) {
    for (const char* split : {"train", "test"})
        for (const Shape& chunk : {Shape{}, Shape{1, 2, 3, 3, 3}}) {
            Hdf5Writer writer(dir_ / (split + std::string(".h5")));
            writer.write("x", counting({5, 2, 6, 5, 4}, DType::f32), chunk);
            writer.write("y", counting({5, 3}, DType::f64));
            writer.commit();
            if (split == std::string("train") && chunk.empty()) continue;
            if (!fs::exists(dir_ / "test.h5")) fs::copy(dir_ / "train.h5", dir_ / "test.h5");
            EXPECT_EQ(dataset_kind(dir_.string()), DataKind::Hdf5Set);
            const auto data = open(Split::Train, {.normalize = "1,2/4,8", .size = {4, 4, 4}});
            EXPECT_EQ(data->info().input, (Shape{2, 4, 4, 4}));
            EXPECT_EQ(data->info().transforms, "centre-crop to 4x4x4, normalize 1,2/4,8");
            const Sample sample = read_whole(*data, {1, 0});
            EXPECT_FLOAT_EQ(sample.input.as<float>()[0], (240 + 20 - 1) / 4.0F);
            EXPECT_FLOAT_EQ(sample.input.as<float>()[64], (240 + 120 + 20 - 2) / 8.0F);
            EXPECT_EQ(sample.target.as<float>()[2], 5);
            expect_boxes_of_the_whole(*data);
        }
    expect_parts(failure({.augment = "rot90"}), {"rot90", "6x5x4"});
    expect_parts(failure({.augment = "jitter"}), {"arrays", "jitter"});
    expect_parts(failure({.augment = "flop"}), {"flop", "did you mean \"flip\""});
    expect_parts(failure({.normalize = "1,2,3/1"}), {"2 channels", "3 numbers"});
    expect_parts(failure({.size = {7, 5, 4}}), {"6x5x4", "7x5x4"});
    expect_parts(failure({.size = {7, 5}}), {"3 spatial dims", "7x5"});
}

TEST_F(VolumesTest, FilesThatDiffer) {
    put_samples("train", 2, {1, 6, 6, 6}, {2}, DType::f32);
    put_samples("test", 1, {1, 6, 6, 6}, {2}, DType::f32);
    Hdf5Writer writer(dir_ / "train/001.h5");
    writer.write("x", counting({1, 6, 6, 5}, DType::f32));
    writer.write("y", counting({2}, DType::f32));
    writer.commit();
    const auto data = open(Split::Train);
    read_whole(*data, {0, 0});
    expect_parts(error_of([&] { read_whole(*data, {1, 0}); }), {"001.h5", "1x6x6x6", "1x6x6x5"});
}

TEST_F(DatasetsTest, WhatIsNoDatasetIsSaid) {
    put("readme.md", "hello");
    expect_parts(failure(), {"expected a folder of pictures for each class", "readme.md"});
    fs::create_directories(dir_ / "train");
    expect_parts(failure(), {"train", "an empty directory"});
    put_folders();
    put_picture("val/dog/1.jpg", 20, 20, 1);
    expect_parts(error_of([&] { open(Split::Test); }), {"\"dog\"", "ant, cat"});
    fs::remove_all(dir_ / "val");
    fs::create_directories(dir_ / "val");
    put("val/x.npy", "");
    expect_parts(failure(), {"train holds images", "val holds npy"});
}

}  // namespace
}  // namespace convoy
