#include "data/planar_images.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "data/whole_sample.h"

namespace convoy {

namespace {

class PlanarImages final : public Dataset {
  public:
    PlanarImages(Tensor pictures, Tensor labels, const DatasetInfo& info, const Transform& transform)
        : pictures_(std::move(pictures)), labels_(std::move(labels)), info_(info), transform_(transform) {
        const Shape& shape = pictures_.shape();
        info_.input = shape.slice(1);
        info_.target = TargetKind::Class;
        info_.target_shape = {};
        const Augment& augment = transform_.augment;
        require(!augment.rotate && augment.jitter == 0 && augment.crop != CropKind::RandomResized,
                "dataset \"{}\" has small pictures of one size; expected an augmentation of flip and random-crop:PAD, found {}", info_.name,
                to_string(augment));
        require(transform_.size.empty() || transform_.size == shape.slice(2),
                "dataset \"{}\" has pictures of {}; expected an input of that size, found {}", info_.name, to_string(shape.slice(2)),
                to_string(transform_.size));
        require_channels(transform_.normalize, shape[1], info_.name);
        info_.transforms =
            fmt::format("{}normalize {}", augment == Augment{} ? "" : to_string(augment) + ", ", to_string(transform_.normalize));
        for (int64_t c = 0; c < shape[1]; ++c) {
            auto& table = values_.emplace_back();
            for (size_t pixel = 0; pixel < table.size(); ++pixel)
                table[pixel] = (static_cast<double>(pixel) / 255 - transform_.normalize.mean_of(c)) / transform_.normalize.deviation_of(c);
            auto& floats = float_values_.emplace_back();
            std::transform(table.begin(), table.end(), floats.begin(), [](double value) { return static_cast<float>(value); });
        }
    }

    const DatasetInfo& info() const override { return info_; }
    int64_t size() const override { return pictures_.shape()[0]; }
    std::unique_ptr<Scratch> make_scratch() const override { return std::make_unique<WholeSample>(info_); }

    int64_t read_sample(SampleId id, const SampleOut& out, Scratch* scratch) const override {
        static_cast<WholeSample&>(*scratch).read(out, [&](std::byte* input, std::byte* target) {
            std::memcpy(target, labels_.as<int32_t>().data() + id.index, sizeof(int32_t));
            if (out.type == DType::f64)
                convert(id, reinterpret_cast<double*>(input), values_);
            else
                convert(id, reinterpret_cast<float*>(input), float_values_);
        });
        return out.input ? numel(info_.input) : 0;
    }

  private:
    template <class T>
    void convert(SampleId id, T* dst, const std::vector<std::array<T, 256>>& values) const {
        const Shape& shape = info_.input;
        const int64_t height = shape[1], width = shape[2];
        const uint8_t* src = pictures_.as<uint8_t>().data() + id.index * numel(shape);
        const Augment& augment = transform_.augment;
        if (augment == Augment{}) {
            for (const auto& table : values)
                for (int64_t i = 0; i < height * width; ++i) *dst++ = table[*src++];
            return;
        }
        SampleRandom random(transform_.seed, id);
        const bool flip = augment.flip && random.coin();
        const auto shift = [&] { return augment.crop == CropKind::Random ? random.below(2 * augment.pad + 1) - augment.pad : 0; };
        const int64_t down = shift(), right = shift();
        for (const auto& table : values) {
            for (int64_t y = 0; y < height; ++y)
                for (int64_t x = 0; x < width; ++x) {
                    const int64_t from_y = y + down, from_x = (flip ? width - 1 - x : x) + right;
                    const bool inside = from_y >= 0 && from_y < height && from_x >= 0 && from_x < width;
                    *dst++ = table[inside ? src[from_y * width + from_x] : 0];
                }
            src += height * width;
        }
    }

    Tensor pictures_, labels_;  // u8 [n, c, h, w], i32 [n]
    DatasetInfo info_;
    Transform transform_;
    std::vector<std::array<double, 256>> values_;  // of each channel, of each pixel's byte
    std::vector<std::array<float, 256>> float_values_;
};

}  // namespace

std::unique_ptr<Dataset> make_planar_images(Tensor pictures, Tensor labels, const DatasetInfo& info, const Transform& transform) {
    return std::make_unique<PlanarImages>(std::move(pictures), std::move(labels), info, transform);
}

}  // namespace convoy
