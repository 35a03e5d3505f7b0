#include "data/synthetic.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/random.h"
#include "data/whole_sample.h"

namespace convoy {

namespace {

constexpr int64_t kMostCells = 8;
constexpr int kBlobs = 4;

// A word as a number with mean 0 and variance 1.
double unit(uint32_t word) { return ((word + 0.5) * 0x1p-32 - 0.5) * 3.4641016151377544; }

// 1 at the centre, falling to 0 at the radius. Positions are in 0..1 in every dim.
struct Blob {
    std::array<double, Dims::kMost> centre{};
    double inverse_square = 0;  // of the radius
};

class Synthetic final : public Dataset {
  public:
    Synthetic(const DatasetInfo& info, int64_t count, uint64_t seed, double signal)
        : info_(info),
          count_(count),
          elements_(numel(info.input)),
          signal_(signal),
          noise_{seed, 0, stream_of("synthetic noise")},
          pattern_{seed, 0, stream_of("synthetic pattern")},
          choice_{seed, 0, stream_of("synthetic choice")} {
        for (int d = 0; d < info_.input.size(); ++d) grid_.push_back(d == 0 ? info_.input[d] : std::min(info_.input[d], kMostCells));
    }

    const DatasetInfo& info() const override { return info_; }
    int64_t size() const override { return count_; }

    std::unique_ptr<Scratch> make_scratch() const override { return std::make_unique<WholeSample>(info_); }

    int64_t read_sample(SampleId id, const SampleOut& out, Scratch* scratch) const override {
        static_cast<WholeSample&>(*scratch).read(out, [&](std::byte* input, std::byte* target) {
            if (out.type == DType::f64)
                generate(id.index, reinterpret_cast<double*>(input), target);
            else
                generate(id.index, reinterpret_cast<float*>(input), target);
        });
        return 0;
    }

  private:
    template <class T>
    void generate(int64_t index, T* x, std::byte* target) const {
        write_noise(index, x);
        switch (info_.target) {
            case TargetKind::Class: return write_class(index, x, reinterpret_cast<int32_t*>(target));
            case TargetKind::Voxel: return write_voxels(index, x, reinterpret_cast<int32_t*>(target));
            case TargetKind::Regression: return write_regression(index, x, reinterpret_cast<T*>(target));
        }
    }

    // Four numbers from each block of the generator; RandomStream would compute a block for every number.
    template <class T>
    void write_noise(int64_t index, T* x) const {
        const int64_t blocks = (elements_ + 3) / 4;
        for (int64_t b = 0; b < blocks; ++b) {
            const auto number = static_cast<uint64_t>(index) * static_cast<uint64_t>(blocks) + static_cast<uint64_t>(b);
            const auto words = philox({static_cast<uint32_t>(number), static_cast<uint32_t>(number >> 32), noise_.step, noise_.stream},
                                      {static_cast<uint32_t>(noise_.seed), static_cast<uint32_t>(noise_.seed >> 32)});
            const int64_t end = std::min<int64_t>(4, elements_ - 4 * b);
            for (int64_t i = 0; i < end; ++i) x[4 * b + i] = static_cast<T>(unit(words[static_cast<size_t>(i)]));
        }
    }

    template <class T>
    void write_class(int64_t index, T* x, int32_t* label) const {
        *label = static_cast<int32_t>((uint64_t{choice_.bits(static_cast<uint64_t>(index))} * static_cast<uint64_t>(info_.classes)) >> 32);
        add_pattern(*label, signal_, x);
    }

    template <class T>
    void write_regression(int64_t index, T* x, T* target) const {
        const int64_t targets = numel(info_.target_shape);
        for (int64_t t = 0; t < targets; ++t) add_pattern(t, signal_ * unit(choice_.bits(static_cast<uint64_t>(index * targets + t))), x);
        for (int64_t t = 0; t < targets; ++t) {
            double sum = 0;
            for_each_run(t, [&](double value, int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) sum += value * static_cast<double>(x[i]);
            });
            target[t] = static_cast<T>(sum / static_cast<double>(elements_));
        }
    }

    template <class T>
    void write_voxels(int64_t index, T* x, int32_t* labels) const {
        const auto blobs = blobs_of(index);
        const Shape spatial = info_.input.slice(1);
        const int last = spatial.size() - 1;  // -1: a single voxel
        const int64_t width = last < 0 ? 1 : spatial[last], rows = numel(spatial) / width, channels = info_.input[0];
        for (int64_t row = 0; row < rows; ++row) {
            std::array<double, kBlobs> outer{};  // squared distance in all dims but the last
            int64_t rest = row;
            for (int d = last - 1; d >= 0; --d) {
                const double at = (static_cast<double>(rest % spatial[d]) + 0.5) / static_cast<double>(spatial[d]);
                rest /= spatial[d];
                for (size_t k = 0; k < kBlobs; ++k) outer[k] += square(at - blobs[k].centre[static_cast<size_t>(d)]);
            }
            for (int64_t i = 0; i < width; ++i) {
                const double at = (static_cast<double>(i) + 0.5) / static_cast<double>(width);
                double outside = 1;
                for (size_t k = 0; k < kBlobs; ++k) {
                    const double distance = outer[k] + (last < 0 ? 0 : square(at - blobs[k].centre[static_cast<size_t>(last)]));
                    outside *= std::min(1.0, distance * blobs[k].inverse_square);
                }
                const double field = 1 - outside;
                const int64_t voxel = row * width + i;
                labels[voxel] =
                    static_cast<int32_t>(std::min(info_.classes - 1, static_cast<int64_t>(field * static_cast<double>(info_.classes))));
                for (int64_t c = 0; c < channels; ++c) x[c * rows * width + voxel] += static_cast<T>(4 * signal_ * (field - 0.5));
            }
        }
    }

    std::array<Blob, kBlobs> blobs_of(int64_t index) const {
        std::array<Blob, kBlobs> blobs;
        auto next = static_cast<uint64_t>(index) * kBlobs * (Dims::kMost + 1);
        for (auto& blob : blobs) {
            for (double& c : blob.centre) c = choice_.uniform(next++);
            blob.inverse_square = 1 / square(0.2 + 0.25 * choice_.uniform(next++));
        }
        return blobs;
    }

    static double square(double v) { return v * v; }

    template <class T>
    void add_pattern(int64_t number, double scale, T* x) const {
        for_each_run(number, [&](double value, int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) x[i] += static_cast<T>(scale * value);
        });
    }

    // Calls f(value, begin, end) for the runs of elements over which pattern `number` is constant, in order.
    template <class F>
    void for_each_run(int64_t number, F&& f) const {
        const Shape& shape = info_.input;
        const int last = shape.size() - 1;
        const int64_t width = shape[last], cells = grid_[last], rows = elements_ / width;
        for (int64_t row = 0; row < rows; ++row) {
            int64_t outer = 0, stride = 1, rest = row;
            for (int d = last - 1; d >= 0; --d) {
                outer += rest % shape[d] * grid_[d] / shape[d] * stride;
                stride *= grid_[d];
                rest /= shape[d];
            }
            const int64_t first = (number * stride + outer) * cells;
            for (int64_t c = 0; c < cells; ++c) {
                const int64_t begin = (c * width + cells - 1) / cells, end = ((c + 1) * width + cells - 1) / cells;
                f(unit(pattern_.bits(static_cast<uint64_t>(first + c))), row * width + begin, row * width + end);
            }
        }
    }

    DatasetInfo info_;
    int64_t count_, elements_;
    double signal_;
    RandomStream noise_, pattern_, choice_;
    Dims grid_;  // cells of the patterns in each dim of the input; a channel is a cell
};

}  // namespace

std::unique_ptr<Dataset> make_synthetic(const DatasetInfo& info, int64_t count, uint64_t seed, double signal) {
    require_valid(info);
    require(count >= 1, "dataset \"{}\": expected at least one sample, found {}", info.name, count);
    require(std::isfinite(signal), "dataset \"{}\": expected a finite signal, found {}", info.name, signal);
    return std::make_unique<Synthetic>(info, count, seed, signal);
}

}  // namespace convoy
