#include "data/synthetic.h"

#include <cmath>
#include <numeric>

#include "data/test_files.h"

namespace convoy {
namespace {

struct Samples {
    Tensor input, target;
};

Samples read_range(const Dataset& data, int64_t first, int64_t count, DType type = DType::f64) {
    Samples s{make_input(data.info(), count, type), make_target(data.info(), count, type)};
    std::vector<int64_t> indices(static_cast<size_t>(count));
    std::iota(indices.begin(), indices.end(), first);
    data.read(indices, s.input, s.target);
    return s;
}

DatasetInfo classes(Shape input, int64_t count) { return {"synthetic", input, TargetKind::Class, {}, count}; }
DatasetInfo voxels(Shape input, int64_t count) { return {"synthetic", input, TargetKind::Voxel, input.slice(1), count}; }
DatasetInfo numbers(Shape input, Shape target) { return {"synthetic", input, TargetKind::Regression, target, 0}; }

TEST(Synthetic, ASampleDependsOnSeedAndIndexOnly) {
    for (const auto& info : {classes({3, 9, 5}, 4), voxels({2, 5, 6, 7}, 3), numbers({2, 9}, {3})}) {
        const auto data = make_synthetic(info, 20, 5, 1.0), longer = make_synthetic(info, 50, 5, 1.0),
                   other = make_synthetic(info, 20, 6, 1.0);
        const Samples batch = read_range(*data, 0, 20);
        for (const int64_t index : {int64_t{0}, int64_t{7}, int64_t{19}}) {
            const Samples one = read_range(*longer, index, 1);
            const auto in = static_cast<size_t>(one.input.bytes()), out = static_cast<size_t>(one.target.bytes());
            EXPECT_EQ(std::memcmp(one.input.data(), batch.input.data() + static_cast<size_t>(index) * in, in), 0);
            EXPECT_EQ(std::memcmp(one.target.data(), batch.target.data() + static_cast<size_t>(index) * out, out), 0);
        }
        EXPECT_FALSE(read_range(*other, 0, 20).input == batch.input);
        EXPECT_FALSE(read_range(*data, 1, 1).input == read_range(*data, 0, 1).input);
        const Samples single = read_range(*data, 0, 20, DType::f32);
        EXPECT_LT(relative_error(single.input.to(DType::f64), batch.input), 1e-6);
        EXPECT_LT(relative_error(single.target.to(DType::f64), batch.target.to(DType::f64)), 1e-5);
    }
}

// Means of the classes over one half tell the classes of the other; without a signal they do not.
double accuracy_of_class_means(double signal) {
    const int64_t count = 400, kinds = 5;
    const auto data = make_synthetic(classes({2, 12, 10}, kinds), 2 * count, 3, signal);
    const Samples known = read_range(*data, 0, count), asked = read_range(*data, count, count);
    const auto size = static_cast<size_t>(numel(data->info().input));
    std::vector<std::vector<double>> means(static_cast<size_t>(kinds), std::vector<double>(size));
    std::vector<double> counts(static_cast<size_t>(kinds));
    for (size_t s = 0; s < static_cast<size_t>(count); ++s) {
        const auto label = static_cast<size_t>(known.target.as<int32_t>()[s]);
        counts[label] += 1;
        for (size_t i = 0; i < size; ++i) means[label][i] += known.input.as<double>()[s * size + i];
    }
    int right = 0;
    for (size_t s = 0; s < static_cast<size_t>(count); ++s) {
        std::vector<double> distances;
        for (size_t k = 0; k < means.size(); ++k) {
            double distance = 0;
            for (size_t i = 0; i < size; ++i) distance += std::pow(asked.input.as<double>()[s * size + i] - means[k][i] / counts[k], 2);
            distances.push_back(distance);
        }
        right += std::min_element(distances.begin(), distances.end()) - distances.begin() == asked.target.as<int32_t>()[s];
    }
    return static_cast<double>(right) / static_cast<double>(count);
}

TEST(Synthetic, ClassesCanBeLearned) {
    EXPECT_GT(accuracy_of_class_means(1.0), 0.95);
    EXPECT_LT(accuracy_of_class_means(0.0), 0.35);
}

TEST(Synthetic, NoiseHasMeanZeroAndVarianceOne) {
    const Samples s = read_range(*make_synthetic(classes({1, 31, 31}, 2), 100, 1, 0.0), 0, 100);
    double mean = 0, square = 0;
    for (const double v : s.input.as<double>()) {
        mean += v / static_cast<double>(s.input.numel());
        square += v * v / static_cast<double>(s.input.numel());
    }
    EXPECT_NEAR(mean, 0, 0.02);
    EXPECT_NEAR(square, 1, 0.02);
}

TEST(Synthetic, VoxelLabelsFollowTheField) {
    for (const Shape& shape : {Shape{2, 40}, Shape{2, 24, 20}, Shape{2, 12, 10, 14}}) {
        const auto data = make_synthetic(voxels(shape, 3), 30, 2, 1.0);
        const Samples s = read_range(*data, 0, 30);
        std::vector<double> sum(3), count(3);
        const auto size = static_cast<size_t>(numel(data->info().target_shape));
        for (size_t i = 0; i < static_cast<size_t>(s.target.numel()); ++i) {
            const auto label = static_cast<size_t>(s.target.as<int32_t>()[i]);
            ASSERT_LT(label, 3u);
            count[label] += 2;
            for (size_t c = 0; c < 2; ++c) sum[label] += s.input.as<double>()[(i / size * 2 + c) * size + i % size];
        }
        // The mean of the input over the voxels of a label lies in the label's step of 4 (field - 1/2).
        for (size_t k = 0; k < 3; ++k) {
            ASSERT_GT(count[k], 100) << to_string(shape);
            EXPECT_GT(sum[k] / count[k], 4 * (static_cast<double>(k) / 3 - 0.5) - 0.1) << to_string(shape);
            EXPECT_LT(sum[k] / count[k], 4 * (static_cast<double>(k + 1) / 3 - 0.5) + 0.1) << to_string(shape);
        }
    }
}

// Solves a x = b by elimination with pivots.
std::vector<double> solve(std::vector<std::vector<double>> a, std::vector<double> b) {
    const size_t n = b.size();
    for (size_t k = 0; k < n; ++k) {
        size_t pivot = k;
        for (size_t i = k; i < n; ++i)
            if (std::fabs(a[i][k]) > std::fabs(a[pivot][k])) pivot = i;
        std::swap(a[k], a[pivot]);
        std::swap(b[k], b[pivot]);
        for (size_t i = 0; i < n; ++i) {
            if (i == k) continue;
            const double factor = a[i][k] / a[k][k];
            for (size_t j = k; j < n; ++j) a[i][j] -= factor * a[k][j];
            b[i] -= factor * b[k];
        }
    }
    for (size_t k = 0; k < n; ++k) b[k] /= a[k][k];
    return b;
}

TEST(Synthetic, RegressionTargetsAreLinearInTheInput) {
    const size_t size = 18, targets = 2;
    const auto data = make_synthetic(numbers({2, 9}, {2}), 60, 4, 1.0);
    const Samples s = read_range(*data, 0, 60);
    const auto x = s.input.as<double>(), y = s.target.as<double>();
    for (size_t t = 0; t < targets; ++t) {
        std::vector<std::vector<double>> rows;
        std::vector<double> right;
        for (size_t i = 0; i < size; ++i) {
            rows.emplace_back(x.begin() + static_cast<int64_t>(i * size), x.begin() + static_cast<int64_t>((i + 1) * size));
            right.push_back(y[i * targets + t]);
        }
        const auto weights = solve(rows, right);
        for (size_t i = size; i < 60; ++i) {
            double value = 0;
            for (size_t j = 0; j < size; ++j) value += weights[j] * x[i * size + j];
            EXPECT_NEAR(value, y[i * targets + t], 1e-8);
        }
        double square = 0;
        for (size_t i = 0; i < 60; ++i) square += y[i * targets + t] * y[i * targets + t] / 60;
        EXPECT_GT(square, 0.1);
    }
}

TEST(Synthetic, RefusesWhatCannotBe) {
    const auto error = [](const DatasetInfo& info, int64_t count = 1) { return error_of([&] { make_synthetic(info, count, 1, 1.0); }); };
    EXPECT_EQ(error(voxels({1, 4, 4}, 2)), "");
    EXPECT_EQ(error(voxels({1}, 2)), "");  // one voxel
    expect_parts(error(classes({1, 4}, 0)), {"at least one class"});
    expect_parts(error(classes({}, 2)), {"input shape"});
    expect_parts(error(classes({1, 0}, 2)), {"input shape", "1x0"});
    expect_parts(error({"s", {1, 4, 4}, TargetKind::Voxel, {4, 5}, 2}), {"voxel", "4x4", "4x5"});
    expect_parts(error({"s", {1, 4, 4}, TargetKind::Class, {4}, 2}), {"class", "scalar"});
    expect_parts(error({"s", {1, 4}, TargetKind::Regression, {2}, 2}), {"no classes"});
    expect_parts(error(classes({1, 4}, 2), 0), {"at least one sample"});
}

}  // namespace
}  // namespace convoy
