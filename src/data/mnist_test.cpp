#include "data/mnist.h"

#include "data/idx.h"
#include "data/open_dataset.h"
#include "data/test_files.h"

namespace convoy {
namespace {

class MnistTest : public DataFilesTest {
  protected:
    std::string message(const Tensor& images, const Tensor& labels) const {
        const auto i = put("images", encode_idx(images)), l = put("labels", encode_idx(labels));
        return error_of([&] { open_idx(i, l, {}); });
    }
};

TEST_F(MnistTest, ReadsNormalisedSamples) {
    const auto images = put("images", encode_idx(Tensor::of<uint8_t>({3, 1, 2}, {0, 255, 51, 102, 7, 9})));
    const auto labels = put("labels", encode_idx(Tensor::of<uint8_t>({3}, {2, 0, 1})));
    const auto data = open_idx(images, labels, {.name = "tiny", .classes = 3, .transform = {.normalize = {{0.5}, {0.25}}}});
    EXPECT_EQ(data->size(), 3);
    EXPECT_EQ(data->info(), (DatasetInfo{"tiny", {1, 1, 2}, TargetKind::Class, {}, 3, {}, "normalize 0.5/0.25"}));
    Tensor input = make_input(data->info(), 3, DType::f64), target = make_target(data->info(), 3, DType::f64);
    target.as<int32_t>()[2] = 77;
    data->read(std::vector<int64_t>{1, 0}, input, target);
    const double expected[] = {-1.2, -0.4, -2, 2, 0, 0};  // the third row is not touched
    for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(input.as<double>()[i], expected[i], 1e-12);
    EXPECT_EQ(target, Tensor::of<int32_t>({3}, {0, 2, 77}));
    Tensor single = make_input(data->info(), 3, DType::f32);
    data->read(std::vector<int64_t>{1, 0}, single, target);
    EXPECT_EQ(single, input.to(DType::f32));
}

TEST_F(MnistTest, ReadingIntoTheWrongTensorsIsABug) {
    const auto images = put("images", encode_idx(Tensor(Shape{3, 2, 2}, DType::u8))),
               labels = put("labels", encode_idx(Tensor(Shape{3}, DType::u8)));
    const auto data = open_idx(images, labels, {});
    Tensor input = make_input(data->info(), 2, DType::f32), target = make_target(data->info(), 2, DType::f32);
    Tensor flat(Shape{2, 4}, DType::f32), integers(Shape{2, 1, 2, 2}, DType::i32);
    data->read(std::vector<int64_t>{0, 2}, input, target);
    EXPECT_THROW(data->read(std::vector<int64_t>{0, 3}, input, target), Bug);
    EXPECT_THROW(data->read(std::vector<int64_t>{-1}, input, target), Bug);
    EXPECT_THROW(data->read(std::vector<int64_t>{0, 1, 2}, input, target), Bug);
    EXPECT_THROW(data->read(std::vector<int64_t>{0}, flat, target), Bug);
    EXPECT_THROW(data->read(std::vector<int64_t>{0}, integers, target), Bug);
    EXPECT_THROW(data->read(std::vector<int64_t>{0}, input, flat), Bug);
}

TEST_F(MnistTest, MessagesNameWhatIsWrong) {
    const Tensor images(Shape{3, 2, 2}, DType::u8), labels(Shape{3}, DType::u8);
    EXPECT_EQ(message(images, labels), "");
    expect_parts(message(images, Tensor::of<uint8_t>({3}, {9, 10, 11})), {"labels: label 1 is 10", "0..9"});
    expect_parts(message(images, Tensor::of<int32_t>({3}, {0, 1, -1})), {"label 2 is -1", "0..9"});
    expect_parts(message(images, Tensor(Shape{4}, DType::u8)), {"expected 3 labels", "found 4"});
    expect_parts(message(images, Tensor(Shape{3, 1}, DType::u8)), {"labels", "1 dim", "3x1"});
    expect_parts(message(images, Tensor(Shape{3}, DType::f32)), {"integer labels", "f32"});
    expect_parts(message(Tensor(Shape{3, 4}, DType::u8), labels), {"images", "3 dims", "3x4"});
    expect_parts(message(Tensor(Shape{3, 2, 2}, DType::f32), labels), {"images", "u8", "f32"});
    expect_parts(message(Tensor(Shape{0, 2, 2}, DType::u8), Tensor(Shape{0}, DType::u8)), {"at least one image"});
    expect_parts(error_of([&] { open_mnist(dir_, Split::Test); }), {"t10k-images-idx3-ubyte.gz"});
    put("t10k-images-idx3-ubyte", encode_idx(images));
    expect_parts(error_of([&] { open_mnist(dir_, Split::Test); }), {"t10k-labels-idx1-ubyte.gz"});
    put("t10k-labels-idx1-ubyte", encode_idx(labels));
    expect_parts(error_of([&] { open_mnist(dir_, Split::Test); }), {"28x28", "found 2x2"});
    EXPECT_EQ(open_idx_directory(dir_, Split::Test, {})->size(), 3);
}

TEST_F(MnistTest, TheRealFiles) {
    const auto test = open_dataset("mnist", Split::Test, {}), train = open_dataset("mnist", Split::Train, {});
    EXPECT_EQ(test->size(), 10000);
    ASSERT_EQ(train->size(), 60000);
    EXPECT_EQ(train->info(), (DatasetInfo{"mnist", {1, 28, 28}, TargetKind::Class, {}, 10, {}, "normalize mnist"}));
    std::vector<int64_t> all(60000);
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
    Tensor input = make_input(train->info(), 60000, DType::f32), target = make_target(train->info(), 60000, DType::f32);
    train->read(all, input, target);
    const int32_t first[] = {5, 0, 4, 1, 9};  // the labels at the head of the file
    for (size_t i = 0; i < 5; ++i) EXPECT_EQ(target.as<int32_t>()[i], first[i]);
    double mean = 0, square = 0;
    for (const float v : input.as<float>()) {
        mean += v;
        square += double{v} * v;
    }
    EXPECT_NEAR(mean / static_cast<double>(input.numel()), 0, 1e-3);
    EXPECT_NEAR(square / static_cast<double>(input.numel()), 1, 1e-3);
}

}  // namespace
}  // namespace convoy
