// The generators: the same samples again, a signal that is there, and a Fourier transform against the sum that defines it.
#include <cmath>
#include <complex>
#include <numeric>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"
#include "data/make/cells.h"
#include "data/make/fft.h"
#include "data/make/fields.h"
#include "data/make/shapes.h"

namespace convoy {
namespace {

using Complex = std::complex<double>;

TEST(Fourier, is_the_sum_that_defines_it) {
    const Shape shape{4, 2, 8};
    const RandomStream random{1, 0, 0};
    std::vector<Complex> values(64);
    for (size_t i = 0; i < values.size(); ++i) values[i] = {random.normal(2 * i), random.normal(2 * i + 1)};
    std::vector<Complex> sums(64);
    for (size_t k = 0; k < 64; ++k)
        for (size_t x = 0; x < 64; ++x) {
            const double turns = static_cast<double>(k / 16 * (x / 16)) / 4 + static_cast<double>(k / 8 % 2 * (x / 8 % 2)) / 2 +
                                 static_cast<double>(k % 8 * (x % 8)) / 8;
            sums[k] += values[x] * std::polar(1.0, -2 * M_PI * turns);
        }
    std::vector<Complex> found = values;
    fourier(found, shape, false);
    for (size_t k = 0; k < 64; ++k) EXPECT_NEAR(std::abs(found[k] - sums[k]), 0, 1e-12) << k;
    fourier(found, shape, true);
    for (size_t k = 0; k < 64; ++k) EXPECT_NEAR(std::abs(found[k] - values[k]), 0, 1e-13) << k;
    std::vector<Complex> six(6);
    EXPECT_THROW(fourier(six, {6}, false), Error);
}

double deviation(std::span<const float> values) {
    double sum = 0;
    for (const float v : values) sum += static_cast<double>(v) * static_cast<double>(v);
    return std::sqrt(sum / static_cast<double>(values.size()));
}

// The root of the mean square of the difference between neighbours along one axis.
double roughness(const Tensor& x, int64_t stride, int64_t size) {
    const auto values = x.as<float>();
    double sum = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < x.numel(); ++i) {
        if (i / stride % size + 1 == size) continue;
        const double d = static_cast<double>(values[static_cast<size_t>(i + stride)]) - static_cast<double>(values[static_cast<size_t>(i)]);
        sum += d * d;
        ++count;
    }
    return std::sqrt(sum / static_cast<double>(count));
}

double correlation(const std::vector<double>& a, const std::vector<double>& b) {
    const auto n = static_cast<double>(a.size());
    const double ma = std::accumulate(a.begin(), a.end(), 0.0) / n, mb = std::accumulate(b.begin(), b.end(), 0.0) / n;
    double ab = 0, aa = 0, bb = 0;
    for (size_t i = 0; i < a.size(); ++i) {
        ab += (a[i] - ma) * (b[i] - mb);
        aa += (a[i] - ma) * (a[i] - ma);
        bb += (b[i] - mb) * (b[i] - mb);
    }
    return ab / std::sqrt(aa * bb);
}

TEST(Fields, carry_their_targets) {
    constexpr int64_t kSize = 16;
    const FieldOptions options{.size = kSize};
    std::vector<double> amplitude, smoothing, distortion, spread, relative, unlike;
    for (uint64_t i = 0; i < 60; ++i) {
        const FieldSample sample = make_field(options, i);
        const auto x = sample.x.as<float>();
        EXPECT_NEAR(std::accumulate(x.begin(), x.end(), 0.0), 0, 0.05);
        const auto y = sample.y.as<float>();
        for (const float t : y) EXPECT_TRUE(t > -1 && t < 1);
        amplitude.push_back(y[0]);
        smoothing.push_back(y[2]);
        distortion.push_back(y[3]);
        const double along = roughness(sample.x, kSize * kSize, kSize), across = roughness(sample.x, 1, kSize);
        spread.push_back(deviation(x));
        relative.push_back(across / deviation(x));
        unlike.push_back(along / across);
    }
    EXPECT_GT(correlation(amplitude, spread), 0.5);
    EXPECT_GT(correlation(smoothing, relative), 0.5);
    EXPECT_GT(correlation(distortion, unlike), 0.6);
    EXPECT_LT(std::abs(correlation(amplitude, unlike)), 0.4);
}

TEST(Fields, are_the_same_again_and_differ_by_number_and_seed) {
    const FieldOptions options{.size = 8, .channels = 2};
    const FieldSample one = make_field(options, 3);
    EXPECT_EQ(one.x, make_field(options, 3).x);
    EXPECT_EQ(one.y, make_field(options, 3).y);
    EXPECT_EQ(one.x.shape(), (Shape{2, 8, 8, 8}));
    EXPECT_FALSE(one.x == make_field(options, 4).x);
    EXPECT_FALSE(one.x == make_field({.size = 8, .channels = 2, .seed = 2}, 3).x);
    EXPECT_THROW(make_field({.size = 12}, 0), Error);
    EXPECT_THROW(make_field({.size = 8, .channels = 0}, 0), Error);
}

TEST(Cells, have_all_classes_and_brightness_that_only_hints) {
    std::array<double, 3> count{}, sum{}, dimmest{1e9, 1e9, 1e9}, brightest{-1e9, -1e9, -1e9};
    for (uint64_t i = 0; i < 4; ++i) {
        const CellSample sample = make_cells({}, i);
        const auto x = sample.x.as<float>();
        const auto y = sample.y.as<uint8_t>();
        for (size_t v = 0; v < y.size(); ++v) {
            ASSERT_LT(y[v], kCellClasses);
            const double light = static_cast<double>(x[v]);
            ++count[y[v]];
            sum[y[v]] += light;
            dimmest[y[v]] = std::min(dimmest[y[v]], light);
            brightest[y[v]] = std::max(brightest[y[v]], light);
        }
    }
    const double all = count[0] + count[1] + count[2];
    EXPECT_GT(count[0] / all, 0.4);
    EXPECT_LT(count[0] / all, 0.8);
    EXPECT_GT(count[2] / all, 0.015);
    for (size_t c = 1; c < 3; ++c) {
        EXPECT_GT(sum[c] / count[c], sum[c - 1] / count[c - 1] + 0.3);
        EXPECT_LT(dimmest[c], brightest[c - 1]);
    }
    EXPECT_EQ(make_cells({.size = 16}, 5).x, make_cells({.size = 16}, 5).x);
    EXPECT_THROW(make_cells({.size = 4}, 0), Error);
}

TEST(Shapes, are_pictures_that_differ) {
    const ShapeOptions options{.size = 24};
    for (size_t c = 0; c < kShapeClasses.size(); ++c) {
        const Pixels a = make_shape(options, c, 0), again = make_shape(options, c, 0), b = make_shape(options, c, 1);
        EXPECT_EQ(a.rgb, again.rgb);
        EXPECT_NE(a.rgb, b.rgb);
        EXPECT_EQ(std::min(a.size.width, a.size.height), 24);
        const auto [low, high] = std::minmax_element(a.rgb.begin(), a.rgb.end());
        EXPECT_GT(*high - *low, 60);
    }
    EXPECT_THROW(make_shape({.size = 4}, 0, 0), Error);
}

}  // namespace
}  // namespace convoy
