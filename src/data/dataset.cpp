#include "data/dataset.h"

#include <algorithm>

#include "base/error.h"
#include "data/bytes.h"

namespace convoy {

namespace {

class Subset final : public Dataset {
  public:
    Subset(std::unique_ptr<Dataset> whole, int64_t first, int64_t count) : whole_(std::move(whole)), first_(first), count_(count) {}

    const DatasetInfo& info() const override { return whole_->info(); }
    int64_t size() const override { return count_; }
    void read_sample(int64_t index, int64_t row, Tensor& input, Tensor& target) const override {
        whole_->read_sample(first_ + index, row, input, target);
    }

  private:
    std::unique_ptr<Dataset> whole_;
    int64_t first_, count_;
};

bool is_real(DType type) { return type == DType::f32 || type == DType::f64; }

bool positive(const Shape& shape) {
    return std::all_of(shape.begin(), shape.end(), [](int64_t size) { return size > 0; });
}

bool is_batch_of(const Shape& sample, const Tensor& tensor) {
    return tensor.shape().size() == sample.size() + 1 && tensor.shape().slice(1) == sample;
}

}  // namespace

std::string_view name_of(TargetKind kind) {
    switch (kind) {
        case TargetKind::Class: return "class";
        case TargetKind::Voxel: return "voxel";
        case TargetKind::Regression: return "regression";
    }
    return "";
}

std::string_view name_of(Split split) { return split == Split::Train ? "train" : "test"; }

void require_valid(const DatasetInfo& info) {
    const auto in_range = [](const Shape& shape) {
        return positive(shape) && shape.size() < Dims::kMost && checked_bytes(shape, 8).has_value();
    };
    require(!info.input.empty() && in_range(info.input), "dataset \"{}\": expected an input shape of 1 to {} positive sizes, found {}",
            info.name, Dims::kMost - 1, to_string(info.input));
    require(in_range(info.target_shape), "dataset \"{}\": expected a target shape of positive sizes, found {}", info.name,
            to_string(info.target_shape));
    if (info.target == TargetKind::Regression) {
        require(info.classes == 0, "dataset \"{}\": regression has no classes, found {}", info.name, info.classes);
        return;
    }
    require(info.classes >= 1 && info.classes <= INT32_MAX, "dataset \"{}\": expected at least one class, found {}", info.name,
            info.classes);
    const Shape expected = info.target == TargetKind::Voxel ? info.input.slice(1) : Shape{};
    require(info.target_shape == expected, "dataset \"{}\": {} labels for input {} have target shape {}, found {}", info.name,
            name_of(info.target), to_string(info.input), to_string(expected), to_string(info.target_shape));
}

Tensor make_input(const DatasetInfo& info, int64_t count, DType type) {
    CONVOY_CHECK(is_real(type), "input of {}", name_of(type));
    return Tensor(join({count}, info.input), type);
}

Tensor make_target(const DatasetInfo& info, int64_t count, DType type) {
    CONVOY_CHECK(is_real(type), "target for input of {}", name_of(type));
    return Tensor(join({count}, info.target_shape), info.target == TargetKind::Regression ? type : DType::i32);
}

void Dataset::read(std::span<const int64_t> indices, Tensor& input, Tensor& target) const {
    const DatasetInfo& of = info();
    const auto count = static_cast<int64_t>(indices.size());
    CONVOY_CHECK(is_real(input.dtype()) && is_batch_of(of.input, input) && input.shape()[0] >= count,
                 "reading {} samples of \"{}\" into {} {}", count, of.name, name_of(input.dtype()), to_string(input.shape()));
    CONVOY_CHECK(target.dtype() == (of.target == TargetKind::Regression ? input.dtype() : DType::i32) &&
                     is_batch_of(of.target_shape, target) && target.shape()[0] >= count,
                 "reading {} targets of \"{}\" into {} {}", count, of.name, name_of(target.dtype()), to_string(target.shape()));
    const int64_t samples = size();
    for (const int64_t index : indices)
        CONVOY_CHECK(index >= 0 && index < samples, "sample {} of the {} of \"{}\"", index, samples, of.name);
    for (int64_t row = 0; row < count; ++row) read_sample(indices[static_cast<size_t>(row)], row, input, target);
}

std::unique_ptr<Dataset> subset(std::unique_ptr<Dataset> whole, int64_t first, int64_t count) {
    const int64_t size = whole->size();
    require(first >= 0 && count >= 1 && first <= size - count, "dataset \"{}\": samples {} to {} were asked for, but it has {}",
            whole->info().name, first, first + count - 1, size);
    return std::make_unique<Subset>(std::move(whole), first, count);
}

}  // namespace convoy
