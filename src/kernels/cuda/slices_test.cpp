// Factors that are cut, and products that are put together again, by the definition.
#include "kernels/cuda/slices.h"

#include <cmath>
#include <limits>

#include "kernels/cuda/conv_testing.h"
#include "kernels/cuda/direct_conv.h"
#include "kernels/cuda/library_plan.h"
#include "tensor/tensor.h"

namespace convoy::cuda {
namespace {

class SlicesTest : public DeviceConvTest {
  protected:
    Operand last(const Shape& shape) { return operand(shape, Layout::channels_last(shape.size())); }
    void* memory(int64_t bytes) {
        memory_.push_back(std::make_unique<DeviceMemory>(*device_, bytes));
        return memory_.back()->data();
    }
    Slices halves(int count, int parts, const Operand& x, const Operand& w, const Operand& y) {
        Slices s{count, x, w, y};
        s.parts = parts;
        s.x_piece = memory(numel(x.desc.shape) / s.pieces() * 2);
        s.products = memory(numel(w.desc.shape) * parts * 2);
        s.y_halves = memory(numel(y.desc.shape) / parts * 2);
        s.scales = memory(s.scales_bytes());
        return s;
    }
    Tensor read_halves(const void* data, const Shape& shape) {
        device_->synchronize();
        Tensor halves(shape, DType::f16);
        check(cudaMemcpy(halves.data(), data, static_cast<size_t>(halves.bytes()), cudaMemcpyDeviceToHost), "cudaMemcpy");
        return halves.to(DType::f64);
    }
    // The gradient of a window of one element from a piece, in double precision, put among the products as halves.
    void multiply(const Slices& s, int index) {
        const int64_t channels = s.x.desc.shape[1], filters = s.y.desc.shape[1], rows = numel(s.x.desc.shape) / channels / s.parts,
                      slice = channels / s.count;
        const Tensor x = read_halves(s.x_piece, {rows, slice}), y = read_halves(s.y_halves, {rows, filters});
        Tensor w({filters, slice}, DType::f64);
        const auto xs = x.as<double>(), ys = y.as<double>();
        for (int64_t k = 0; k < filters; ++k)
            for (int64_t c = 0; c < slice; ++c) {
                double sum = 0;
                for (int64_t r = 0; r < rows; ++r) sum += xs[static_cast<size_t>(r * slice + c)] * ys[static_cast<size_t>(r * filters + k)];
                w.as<double>()[static_cast<size_t>(k * slice + c)] = sum;
            }
        const Tensor narrow = w.to(DType::f16);
        auto* const to = static_cast<std::byte*>(s.products) + index * narrow.bytes();
        check(cudaMemcpy(to, narrow.data(), static_cast<size_t>(narrow.bytes()), cudaMemcpyHostToDevice), "cudaMemcpy");
    }
    std::vector<float> product(const Slices& s) {
        start_scaling(*device_, s);
        for (int i = 0; i < s.pieces(); ++i) {
            start_cutting(*device_, s, i);
            multiply(s, i);
        }
        start_joining(*device_, s);
        return read(s.w);
    }
    void write(const Operand& o, const std::vector<float>& values) {
        check(cudaMemcpy(o.data, values.data(), values.size() * 4, cudaMemcpyHostToDevice), "cudaMemcpy");
    }
};

TEST_F(SlicesTest, HalvesKeepTheDigitsOfEveryChannel) {
    for (int round = 0; round < 20; ++round) {
        memory_.clear();
        const int count = static_cast<int>(between(1, 3));
        const int64_t channels = 32 * count * between(1, 2), filters = 8 * between(1, 5), parts = between(1, 3), n = parts * between(1, 2),
                      size = between(1, 9);
        const Operand x = last({n, channels, size, size}), y = last({n, filters, size, size}), w = last({filters, channels, 1, 1});
        // Channels of very different sizes.
        auto xs = read(x), ys = read(y);
        for (size_t i = 0; i < xs.size(); ++i) xs[i] = std::ldexp(xs[i], static_cast<int>(i % static_cast<size_t>(channels) % 64) - 40);
        for (size_t i = 0; i < ys.size(); ++i) ys[i] = std::ldexp(ys[i], 30 - 2 * static_cast<int>(i % static_cast<size_t>(filters)));
        write(x, xs);
        write(y, ys);
        const auto is = product(halves(count, static_cast<int>(parts), x, w, y));
        const size_t rows = xs.size() / static_cast<size_t>(channels);
        for (size_t k = 0; k < static_cast<size_t>(filters); ++k)
            for (size_t c = 0; c < static_cast<size_t>(channels); ++c) {
                double sum = 0, squares_x = 0, squares_y = 0;
                for (size_t r = 0; r < rows; ++r) {
                    const double a = xs[r * static_cast<size_t>(channels) + c], b = ys[r * static_cast<size_t>(filters) + k];
                    sum += a * b;
                    squares_x += a * a;
                    squares_y += b * b;
                }
                ASSERT_NEAR(is[k * static_cast<size_t>(channels) + c], sum, 2e-3 * std::sqrt(squares_x * squares_y));
            }
    }
}

TEST_F(SlicesTest, HalvesOfFarNumbers) {
    const Operand x = last({1, 32, 2, 2}), y = last({1, 8, 2, 2}), w = last({8, 32, 1, 1});
    for (const float size : {0.0f, 1e-20f, 1e18f}) {
        write(x, std::vector<float>(128, size));
        write(y, std::vector<float>(32, 0.25f));
        for (const float v : product(halves(1, 1, x, w, y))) EXPECT_NEAR(v, size, 2e-3 * size);
    }
    write(x, std::vector<float>(128, std::numeric_limits<float>::quiet_NaN()));
    for (const float v : product(halves(1, 1, x, w, y))) EXPECT_TRUE(std::isnan(v));
}

// Through the library, with windows that have taps, strides and padding.
TEST_F(SlicesTest, MakeTheGradientOfTheDefinition) {
    constexpr int64_t kScratch = int64_t{64} << 20;
    DeviceMemory scratch(*device_, kScratch);
    for (int round = 0; round < 12; ++round) {
        memory_.clear();
        const int rank = static_cast<int>(between(1, 3)), count = static_cast<int>(between(1, 3)), parts = static_cast<int>(between(1, 2));
        Window window{{}, {}, {}, {}, {}};
        Shape xs{2, 32 * count}, ws{8 * between(1, 4), xs[1]}, ys{2, ws[0]};
        for (int d = 0; d < rank; ++d) {
            const int64_t kernel = 2 * between(0, 1) + 1, stride = between(1, 2), pad = between(0, kernel / 2), size = between(4, 10);
            window.kernel.push_back(kernel);
            window.stride.push_back(stride);
            window.dilation.push_back(1);
            window.pad_lo.push_back(pad);
            window.pad_hi.push_back(pad);
            xs.push_back(size);
            ws.push_back(kernel);
            ys.push_back((size + 2 * pad - kernel) / stride + 1);
        }
        const Operand x = last(xs), y = last(ys), w = last(ws), expected = last(ws);
        const Slices s = halves(count, parts, x, w, y);
        Asked asked{Direction::GradWeight, window, DType::tf32, x, w, y, {}};
        asked.x.desc.shape[1] = asked.w.desc.shape[1] = xs[1] / count;
        asked.x.desc.shape[0] = asked.y.desc.shape[0] = xs[0] / parts;
        asked.x.desc.dtype = asked.w.desc.dtype = asked.y.desc.dtype = DType::f16;
        asked.x.data = s.x_piece;
        asked.w.data = s.products;
        asked.y.data = s.y_halves;
        Failures failures;
        const auto plan = library_plan(*device_, asked, Scratch(scratch.data(), kScratch), 0, failures);
        ASSERT_TRUE(plan) << text_of(asked);
        start_scaling(*device_, s);
        for (int i = 0; i < s.pieces(); ++i) {
            start_cutting(*device_, s, i);
            auto* const product = static_cast<std::byte*>(s.products) + i * numel(asked.w.desc.shape) * 2;
            plan->bind({{kX, s.x_piece}, {kW, product}, {kY, asked.y.data}}, Scratch(scratch.data(), kScratch).rest());
            plan->run(*device_);
        }
        start_joining(*device_, s);
        start_direct_conv(*device_, {Direction::GradWeight, window, 1, x, expected, y});
        const auto is = read(w), should = read(expected);
        const double terms = std::sqrt(static_cast<double>(numel(ys) / ys[1]));
        for (size_t i = 0; i < is.size(); ++i) ASSERT_NEAR(is[i], should[i], 4e-3 * terms) << text_of(asked) << " at " << i;
    }
}

TEST(Parts, OfABatchDivideIt) {
    constexpr int64_t kMillion = 1 << 20;
    EXPECT_EQ(parts_of_batch({8, 32, kMillion}, 1), 1) << "512 MiB";
    EXPECT_EQ(parts_of_batch({9, 32, kMillion}, 1), 3);
    EXPECT_EQ(parts_of_batch({9, 96, kMillion}, 3), 3);
    EXPECT_EQ(parts_of_batch({7, 96, kMillion}, 1), 7) << "no other divides it";
    EXPECT_EQ(parts_of_batch({1, 96, 8 * kMillion}, 1), 1) << "a sample is not cut";
}

TEST_F(SlicesTest, OfOtherTypesAreCopies) {
    constexpr int64_t kCount = 3, kSlice = 32, kRows = 30, kFilters = 8;
    Operand x = last({2, kCount * kSlice, 3, 5});
    const Operand w = last({kFilters, kCount * kSlice, 1, 1});
    x.desc.dtype = DType::bf16;
    Slices s{kCount, x, w, x};
    s.x_piece = memory(numel(x.desc.shape) / kCount * 2);
    s.products = memory(numel(w.desc.shape) * 2);
    const auto bits = [&](const void* from, int64_t count) {
        device_->synchronize();
        std::vector<uint16_t> values(static_cast<size_t>(count));
        check(cudaMemcpy(values.data(), from, values.size() * 2, cudaMemcpyDeviceToHost), "cudaMemcpy");
        return values;
    };
    start_scaling(*device_, s);
    const auto whole = bits(x.data, kRows * kCount * kSlice);
    for (int i = 0; i < kCount; ++i) {
        start_cutting(*device_, s, i);
        const auto cut = bits(s.x_piece, kRows * kSlice);
        for (size_t r = 0; r < kRows; ++r)
            for (size_t c = 0; c < kSlice; ++c)
                ASSERT_EQ(cut[r * kSlice + c], whole[r * kCount * kSlice + static_cast<size_t>(i) * kSlice + c]);
    }

    Tensor products({kCount, kFilters, kSlice}, DType::f32);
    for (size_t i = 0; i < kCount * kFilters * kSlice; ++i) products.as<float>()[i] = static_cast<float>(i % 251);
    const Tensor narrow = products.to(DType::bf16);
    check(cudaMemcpy(s.products, narrow.data(), static_cast<size_t>(narrow.bytes()), cudaMemcpyHostToDevice), "cudaMemcpy");
    start_joining(*device_, s);
    const auto joined = read(w);
    for (size_t k = 0; k < kFilters; ++k)
        for (size_t c = 0; c < kCount * kSlice; ++c)
            ASSERT_EQ(joined[k * kCount * kSlice + c], products.as<float>()[(c / kSlice * kFilters + k) * kSlice + c % kSlice]);
}

}  // namespace
}  // namespace convoy::cuda
