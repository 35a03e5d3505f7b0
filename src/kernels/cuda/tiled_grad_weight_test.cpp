// Against the gradient as the definition says, on random problems, in both layouts.
#include "kernels/cuda/tiled_grad_weight.h"

#include <algorithm>
#include <cmath>

#include "base/test_count.h"
#include "kernels/cuda/conv_testing.h"
#include "kernels/cuda/direct_conv.h"

namespace convoy::cuda {
namespace {

using TiledGradWeightTest = DeviceConvTest;

TEST_F(TiledGradWeightTest, AgreesWithTheDefinition) {
    for (int round = 0; round < test_count(20, 200); ++round) {
        memory_.clear();
        const int rank = static_cast<int>(between(1, 3));
        const int64_t width = between(0, 1) == 0 ? 3 : 5, channels = between(1, 20), filters = between(1, 40);
        Window window{{}, {}, {}, {}, {}};
        Shape x{between(1, 3), channels}, w{filters, channels}, y{x[0], filters};
        for (int d = 0; d < rank; ++d) {
            const int64_t kernel = d == rank - 1 || width == 3 ? width : between(1, 3), lo = between(0, kernel), hi = between(0, kernel);
            const int64_t size = std::max(between(1, rank == 1 ? 300 : rank == 2 ? 90 : 20), kernel);
            window.kernel.push_back(kernel);
            window.stride.push_back(1);
            window.dilation.push_back(1);
            window.pad_lo.push_back(lo);
            window.pad_hi.push_back(hi);
            x.push_back(size);
            w.push_back(kernel);
            y.push_back(size + lo + hi - kernel + 1);
        }
        const bool last = between(0, 1) == 1;
        const auto layout = [&](const Shape& shape) { return last ? Layout::channels_last(shape.size()) : Layout::plain(); };
        const Operand in = operand(x, layout(x)), out = operand(y, layout(y)), dw = operand(w, layout(w)), expected = operand(w, layout(w));
        const auto conv = tiled_grad_weight(window, in, dw, out);
        if (rank == 1 && width == 3) {
            EXPECT_FALSE(conv.has_value());  // a thread has three rows
            continue;
        }
        ASSERT_TRUE(conv.has_value()) << to_string(x) << " " << to_string(w);
        DeviceMemory scratch(*device_, conv->scratch_bytes);
        scratch.fill(0xFF);
        start_tiled_grad_weight(*device_, *conv, in, out, dw, scratch.data());
        start_direct_conv(*device_, {Direction::GradWeight, window, 1, in, expected, out});
        const auto is = read(dw), should = read(expected);
        const double terms = std::sqrt(static_cast<double>(numel(y) / y[1]));  // of the size of one
        for (size_t i = 0; i < is.size(); ++i)
            ASSERT_NEAR(is[i], should[i], 1e-5 * terms)
                << to_string(x) << " " << to_string(w) << " " << to_string(y) << (last ? " last" : "") << " at " << i;
    }
}

TEST_F(TiledGradWeightTest, RefusesWhatItCannotDo) {
    const auto takes = [&](const Window& window, int64_t channels, DType type = DType::f32) {
        Operand in = operand({1, channels, 8, 8}, Layout::plain()), out = operand({1, 4, 6, 6}, Layout::plain()),
                w = operand({4, 2, 3, 3}, Layout::plain());
        in.desc.dtype = type;
        return tiled_grad_weight(window, in, w, out).has_value();
    };
    const Window plain{{3, 3}, {1, 1}, {1, 1}, {0, 0}, {0, 0}};
    EXPECT_TRUE(takes(plain, 2));
    EXPECT_FALSE(takes(plain, 4)) << "groups";
    EXPECT_FALSE(takes(plain, 2, DType::bf16));
    for (auto change : {&Window::stride, &Window::dilation}) {
        Window window = plain;
        (window.*change)[1] = 2;
        EXPECT_FALSE(takes(window, 2));
    }
    Window wide = plain;
    wide.kernel[1] = 4;
    EXPECT_FALSE(takes(wide, 2));
}

}  // namespace
}  // namespace convoy::cuda
