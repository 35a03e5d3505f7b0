#include "data/make/cells.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/random.h"

namespace convoy {

namespace {

using Vector = std::array<double, 3>;  // depth, row, column

double dot(const Vector& a, const Vector& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
Vector minus(const Vector& a, const Vector& b) { return {a[0] - b[0], a[1] - b[1], a[2] - b[2]}; }

// Numbers one after the other out of a stream.
struct Draw {
    RandomStream random;
    uint64_t next = 0;
    double between(double low, double high) { return low + (high - low) * random.uniform(next++); }
    double normal() { return random.normal(kNormals + next++); }
    static constexpr uint64_t kNormals = uint64_t{1} << 40;  // words of their own
};

// A turned ellipsoid, bumpy: its surface is where `at` gives 1.
struct Ellipsoid {
    Vector centre{};
    std::array<Vector, 3> axes{};  // of unit length, across each other
    Vector radii{};
    double bump = 0, phase = 0;

    double at(const Vector& p) const {
        const Vector d = minus(p, centre);
        const Vector local{dot(d, axes[0]) / radii[0], dot(d, axes[1]) / radii[1], dot(d, axes[2]) / radii[2]};
        const double distance = std::sqrt(dot(local, local));
        return distance * (1 + bump * std::sin(3 * local[0] + 2 * local[1] + phase) * std::sin(3 * local[2] - phase));
    }
    double reach() const { return *std::max_element(radii.begin(), radii.end()) * (1 + bump); }
};

std::array<Vector, 3> turned(Draw& draw) {
    Vector a{draw.normal(), draw.normal(), draw.normal()}, b{draw.normal(), draw.normal(), draw.normal()};
    const auto unit = [](Vector v) {
        const double length = std::sqrt(dot(v, v)) + 1e-12;
        return Vector{v[0] / length, v[1] / length, v[2] / length};
    };
    a = unit(a);
    const double along = dot(a, b);
    b = unit({b[0] - along * a[0], b[1] - along * a[1], b[2] - along * a[2]});
    return {a, b, Vector{a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]}};
}

struct Cell {
    Ellipsoid body, nucleus;
    double body_light, nucleus_light;
};

Cell draw_cell(Draw& draw, double size, double radius) {
    Cell cell{};
    Ellipsoid& body = cell.body;
    body.axes = turned(draw);
    for (int d = 0; d < 3; ++d) body.centre[static_cast<size_t>(d)] = draw.between(0, size);
    for (double& r : body.radii) r = radius * draw.between(0.75, 1.3);
    body.bump = draw.between(0, 0.15);
    body.phase = draw.between(0, 6.28);
    cell.nucleus = body;
    cell.nucleus.bump = 0;
    const double share = draw.between(0.5, 0.65), aside = 0.2 * radius;
    for (double& r : cell.nucleus.radii) r *= share;
    for (double& c : cell.nucleus.centre) c += draw.between(-aside, aside);
    // A dim cell's nucleus is no brighter than a bright cell's body.
    cell.body_light = draw.between(0.35, 0.8);
    cell.nucleus_light = cell.body_light * draw.between(1.5, 1.8);
    return cell;
}

// A volume while it is being drawn.
class Volume {
  public:
    explicit Volume(int64_t size)
        : size_(size), light_(static_cast<size_t>(size * size * size)), labels_(light_.size()), owner_(light_.size(), -1) {}

    // Voxels that no earlier cell has.
    void draw(const Cell& cell, int number) {
        in_reach(cell.body.centre, cell.body.reach(), [&](size_t i, const Vector& p) {
            if (owner_[i] >= 0 || cell.body.at(p) > 1) return;
            owner_[i] = number;
            const bool inside = cell.nucleus.at(p) <= 1;
            labels_[i] = inside ? 2 : 1;
            light_[i] = inside ? cell.nucleus_light : cell.body_light;
        });
    }
    // A bright speck that is no cell.
    void speck(const Vector& centre, double radius, double light) {
        in_reach(centre, 3 * radius, [&](size_t i, const Vector& p) {
            const Vector d = minus(p, centre);
            if (owner_[i] < 0) light_[i] += light * std::exp(-dot(d, d) / (2 * radius * radius));
        });
    }
    // Weights 1/4, 1/2, 1/4 along each axis.
    void blur() {
        const int64_t strides[] = {size_ * size_, size_, 1};
        std::vector<double> before;
        for (const int64_t stride : strides) {
            before = light_;
            for (int64_t i = 0; i < static_cast<int64_t>(light_.size()); ++i) {
                const int64_t along = i / stride % size_;
                const int64_t low = along > 0 ? i - stride : i, high = along + 1 < size_ ? i + stride : i;
                light_[static_cast<size_t>(i)] =
                    (before[static_cast<size_t>(low)] + 2 * before[static_cast<size_t>(i)] + before[static_cast<size_t>(high)]) / 4;
            }
        }
    }
    template <class F>
    void each(F&& fn) {
        in_reach({static_cast<double>(size_) / 2, static_cast<double>(size_) / 2, static_cast<double>(size_) / 2},
                 static_cast<double>(size_), fn);
    }
    std::vector<double>& light() { return light_; }
    const std::vector<uint8_t>& labels() const { return labels_; }

  private:
    // Calls fn(index, middle of the voxel) for the voxels of the cube around a point.
    template <class F>
    void in_reach(const Vector& centre, double reach, F&& fn) {
        std::array<int64_t, 3> low{}, high{};
        for (size_t d = 0; d < 3; ++d) {
            low[d] = std::max<int64_t>(0, static_cast<int64_t>(std::floor(centre[d] - reach)));
            high[d] = std::min<int64_t>(size_, static_cast<int64_t>(std::ceil(centre[d] + reach)) + 1);
        }
        for (int64_t z = low[0]; z < high[0]; ++z)
            for (int64_t y = low[1]; y < high[1]; ++y)
                for (int64_t x = low[2]; x < high[2]; ++x)
                    fn(static_cast<size_t>((z * size_ + y) * size_ + x),
                       Vector{static_cast<double>(z) + 0.5, static_cast<double>(y) + 0.5, static_cast<double>(x) + 0.5});
    }

    int64_t size_;
    std::vector<double> light_;
    std::vector<uint8_t> labels_;
    std::vector<int> owner_;
};

}  // namespace

void require_valid(const CellOptions& options) {
    require(options.size >= 8 && options.size <= 512, "cells in {0}x{0}x{0}: expected 8 to 512 voxels along each side", options.size);
    require(options.cells >= 0 && options.cells <= 10000, "{} cells in a volume: expected 0 to 10000", options.cells);
}

CellSample make_cells(const CellOptions& options, uint64_t index) {
    require_valid(options);
    const auto size = static_cast<double>(options.size);
    Draw draw{{options.seed, static_cast<uint32_t>(index), stream_of("cells")}};
    // About a third of the volume, whatever its size: cells of 64^3 are larger in voxels, and there are more of them.
    const double radius = std::clamp(size / 6, 3.5, 12.0);
    const auto usual = static_cast<int64_t>(0.45 * size * size * size / (4.2 * radius * radius * radius)) + 1;
    const int64_t cells = options.cells > 0 ? options.cells : usual;

    Volume volume(options.size);
    for (int c = 0; c < static_cast<int>(cells); ++c) volume.draw(draw_cell(draw, size, radius), c);
    for (int64_t s = 0; s < 2 * cells; ++s) {
        const Vector centre{draw.between(0, size), draw.between(0, size), draw.between(0, size)};
        volume.speck(centre, draw.between(0.6, 1.2), draw.between(0.5, 1.2));
    }
    volume.blur();

    // Light that falls off to one side, then the noise of the detector.
    const Vector fall{draw.between(-0.4, 0.4), draw.between(-0.4, 0.4), draw.between(-0.4, 0.4)};
    const RandomStream noise{options.seed, static_cast<uint32_t>(index), stream_of("cells noise")};
    CellSample sample{Tensor({1, options.size, options.size, options.size}, DType::f32),
                      Tensor({options.size, options.size, options.size}, DType::u8)};
    float* const x = sample.x.as<float>().data();
    volume.each([&](size_t i, const Vector& p) {
        const Vector from_middle{p[0] / size - 0.5, p[1] / size - 0.5, p[2] / size - 0.5};
        const double light = (0.1 + volume.light()[i]) * (1 + dot(fall, from_middle)) + 0.09 * noise.normal(i);
        x[i] = static_cast<float>((light - 0.35) / 0.3);
    });
    std::copy(volume.labels().begin(), volume.labels().end(), sample.y.as<uint8_t>().begin());
    return sample;
}

}  // namespace convoy
