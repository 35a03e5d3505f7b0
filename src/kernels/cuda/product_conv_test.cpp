// Against the convolution as the definition says, on random problems, in all directions.
#include "kernels/cuda/product_conv.h"

#include <cmath>

#include "base/error.h"
#include "base/test_count.h"
#include "kernels/cuda/conv_testing.h"
#include "kernels/cuda/direct_conv.h"

namespace convoy::cuda {
namespace {

class ProductConvTest : public DeviceConvTest {
  protected:
    // Windows that do not overlap, half of them of one element, over random sizes.
    ProductConv problem(Direction direction) {
        const int rank = static_cast<int>(between(1, 3));
        ProductConv conv{direction, {}, {}, {}, {}, direction == Direction::GradWeight && between(0, 1) == 1};
        if (between(0, 1) == 1) conv.part_bytes = 1 << between(8, 14);
        Shape x{between(1, 8), between(0, 1) == 1 ? 8 * between(1, 5) : between(1, 40)}, w{between(1, 70), x[1]}, y{x[0], w[0]};
        const bool single = between(0, 1) == 1;
        for (int d = 0; d < rank; ++d) {
            const int64_t stride = between(1, 3), kernel = single ? 1 : between(1, stride);
            const int64_t size = between(kernel, rank == 1 ? 200 : rank == 2 ? 40 : 9);
            conv.window.kernel.push_back(kernel);
            conv.window.stride.push_back(stride);
            conv.window.dilation.push_back(1);
            conv.window.pad_lo.push_back(0);
            conv.window.pad_hi.push_back(0);
            x.push_back(size);
            w.push_back(kernel);
            y.push_back((size - kernel) / stride + 1);
        }
        conv.x = operand(x, Layout::plain());
        conv.w = operand(w, Layout::plain());
        conv.y = operand(y, Layout::plain());
        return conv;
    }
    static Operand& result_of(ProductConv& conv) {
        return conv.direction == Direction::Forward ? conv.y : conv.direction == Direction::GradInput ? conv.x : conv.w;
    }
};

TEST_F(ProductConvTest, AgreesWithTheDefinition) {
    constexpr int64_t kScratch = int64_t{64} << 20;
    DeviceMemory scratch(*device_, kScratch);
    for (const Direction direction : {Direction::Forward, Direction::GradInput, Direction::GradWeight})
        for (int round = 0; round < test_count(20, 100); ++round) {
            memory_.clear();
            ProductConv conv = problem(direction), definition = conv;
            result_of(definition) = operand(result_of(conv).desc.shape, Layout::plain());
            ASSERT_TRUE(is_product(conv, 1));
            int64_t left = 0;
            const auto start = product_conv(*device_, conv, DType::f32, Scratch(scratch.data(), kScratch), left);
            ASSERT_TRUE(start) << to_string(conv.x.desc.shape) << " " << to_string(conv.w.desc.shape);
            start();
            start_direct_conv(*device_, {direction, conv.window, 1, definition.x, definition.w, definition.y});
            const auto is = read(result_of(conv)), should = read(result_of(definition));
            const Shape &w = conv.w.desc.shape, &y = conv.y.desc.shape;
            const int64_t terms = direction == Direction::Forward     ? numel(w) / w[0]
                                  : direction == Direction::GradInput ? w[0]
                                                                      : numel(y) / y[1];
            for (size_t i = 0; i < is.size(); ++i)
                ASSERT_NEAR(is[i], should[i], 1e-5 * std::sqrt(static_cast<double>(terms)))
                    << static_cast<int>(direction) << " " << to_string(conv.x.desc.shape) << " " << to_string(conv.w.desc.shape)
                    << " stride " << to_string(conv.window.stride) << " at " << i;
        }
}

TEST_F(ProductConvTest, SaysWhenMemoryIsTooLittle) {
    ProductConv conv{Direction::GradWeight, {{1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}}, {}, {}, {}, true};
    conv.x = operand({4, 8, 5, 5}, Layout::plain());
    conv.w = operand({16, 8, 1, 1}, Layout::plain());
    conv.y = operand({4, 16, 5, 5}, Layout::plain());
    DeviceMemory scratch(*device_, 4096);
    int64_t left = 0;
    EXPECT_FALSE(product_conv(*device_, conv, DType::f32, Scratch(scratch.data(), 4096), left));
}

TEST_F(ProductConvTest, IsForWindowsThatDoNotOverlap) {
    ProductConv conv{Direction::Forward, {{1, 1}, {2, 1}, {1, 1}, {0, 0}, {0, 0}}, {}, {}, {}};
    conv.x = operand({2, 8, 5, 5}, Layout::plain());
    conv.w = operand({16, 8, 1, 1}, Layout::plain());
    conv.y = operand({2, 16, 3, 5}, Layout::plain());
    EXPECT_TRUE(is_product(conv, 1));
    EXPECT_FALSE(is_product(conv, 2));
    ProductConv tiles{Direction::GradInput, {{2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}}, {}, {}, {}};
    tiles.x = operand({2, 8, 6, 6}, Layout::plain());
    tiles.w = operand({16, 8, 2, 2}, Layout::plain());
    tiles.y = operand({2, 16, 3, 3}, Layout::plain());
    EXPECT_TRUE(is_product(tiles, 1));
    tiles.window.dilation[0] = 2;
    EXPECT_FALSE(is_product(tiles, 1));
    for (const auto change : {&Window::kernel, &Window::pad_lo, &Window::pad_hi}) {
        ProductConv other = conv;
        (other.window.*change)[1] += 1;
        EXPECT_FALSE(is_product(other, 1));
    }
    conv.x.layout = Layout::channels_last(4);
    EXPECT_FALSE(is_product(conv, 1));
}

}  // namespace
}  // namespace convoy::cuda
