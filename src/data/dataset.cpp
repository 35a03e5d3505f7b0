#include "data/dataset.h"

#include <algorithm>

#include "base/error.h"
#include "data/bytes.h"

namespace convoy {

namespace {

// Samples of another dataset, by a rule that gives their numbers there.
template <class Rule>
class Selected final : public Dataset {
  public:
    Selected(std::unique_ptr<Dataset> whole, int64_t count, Rule rule) : whole_(std::move(whole)), count_(count), rule_(rule) {}

    const DatasetInfo& info() const override { return whole_->info(); }
    int64_t size() const override { return count_; }
    std::unique_ptr<Scratch> make_scratch() const override { return whole_->make_scratch(); }
    int64_t read_sample(SampleId id, const SampleOut& out, Scratch* scratch) const override {
        return whole_->read_sample({rule_(id.index), id.epoch}, out, scratch);
    }
    std::string describe(int64_t index) const override { return whole_->describe(rule_(index)); }
    std::vector<SkippedSample> skipped() const override { return whole_->skipped(); }

  private:
    std::unique_ptr<Dataset> whole_;
    int64_t count_;
    Rule rule_;
};

template <class Rule>
std::unique_ptr<Dataset> selected(std::unique_ptr<Dataset> whole, int64_t count, Rule rule) {
    return std::make_unique<Selected<Rule>>(std::move(whole), count, rule);
}

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
    require(info.class_names.empty() || static_cast<int64_t>(info.class_names.size()) == info.classes,
            "dataset \"{}\": expected a name for each of {} classes, found {}", info.name, info.classes, info.class_names.size());
    const Shape expected = info.target == TargetKind::Voxel ? info.input.slice(1) : Shape{};
    require(info.target_shape == expected, "dataset \"{}\": {} labels for input {} have target shape {}, found {}", info.name,
            name_of(info.target), to_string(info.input), to_string(expected), to_string(info.target_shape));
}

std::string targets_text(const DatasetInfo& info) {
    if (info.target == TargetKind::Regression) return fmt::format("{} real numbers for each sample", to_string(info.target_shape));
    std::vector<std::string> names = info.class_names;
    const size_t all = names.size();
    if (all > 12) names.resize(12);
    return fmt::format("{} class{}{}{}{}", info.classes, info.classes == 1 ? "" : "es",
                       info.target == TargetKind::Voxel ? " of voxels" : "",
                       names.empty() ? "" : fmt::format(": {}", fmt::join(names, ", ")), all > 12 ? ", ..." : "");
}

Tensor make_input(const DatasetInfo& info, int64_t count, DType type) {
    CONVOY_CHECK(is_real(type), "input of {}", name_of(type));
    return Tensor(join({count}, info.input), type);
}

Tensor make_target(const DatasetInfo& info, int64_t count, DType type) {
    CONVOY_CHECK(is_real(type), "target for input of {}", name_of(type));
    return Tensor(join({count}, info.target_shape), target_type(info, type));
}

DType target_type(const DatasetInfo& info, DType type) { return info.target == TargetKind::Regression ? type : DType::i32; }

std::string Dataset::describe(int64_t index) const { return fmt::format("sample {}, {}", index, to_string(info().input)); }

void Dataset::read(std::span<const int64_t> indices, Tensor& input, Tensor& target, int64_t epoch) const {
    const DatasetInfo& of = info();
    const auto count = static_cast<int64_t>(indices.size());
    CONVOY_CHECK(is_real(input.dtype()) && is_batch_of(of.input, input) && input.shape()[0] >= count,
                 "reading {} samples of \"{}\" into {} {}", count, of.name, name_of(input.dtype()), to_string(input.shape()));
    CONVOY_CHECK(target.dtype() == target_type(of, input.dtype()) && is_batch_of(of.target_shape, target) && target.shape()[0] >= count,
                 "reading {} targets of \"{}\" into {} {}", count, of.name, name_of(target.dtype()), to_string(target.shape()));
    const int64_t samples = size();
    for (const int64_t index : indices)
        CONVOY_CHECK(index >= 0 && index < samples, "sample {} of the {} of \"{}\"", index, samples, of.name);
    const auto scratch = make_scratch();
    SampleOut out{.type = input.dtype(), .input_box = Box::whole(of.input), .target_box = Box::whole(of.target_shape)};
    for (int64_t row = 0; row < count; ++row) {
        out.input = input.data() + row * numel(of.input) * size_of(input.dtype());
        out.target = target.data() + row * numel(of.target_shape) * size_of(target.dtype());
        read_sample({indices[static_cast<size_t>(row)], epoch}, out, scratch.get());
    }
}

std::unique_ptr<Dataset> subset(std::unique_ptr<Dataset> whole, int64_t first, int64_t count) {
    const int64_t size = whole->size();
    require(first >= 0 && count >= 1 && first <= size - count, "dataset \"{}\": samples {} to {} were asked for, but it has {}",
            whole->info().name, first, first + count - 1, size);
    return selected(std::move(whole), count, [first](int64_t i) { return first + i; });
}

std::unique_ptr<Dataset> one_of_ten(std::unique_ptr<Dataset> whole, Split split) {
    const int64_t size = whole->size(), tests = size / 10;
    require(tests >= 1, "dataset \"{}\" has no test split, and with {} samples too few to take one out of ten for it", whole->info().name,
            size);
    if (split == Split::Test) return selected(std::move(whole), tests, [](int64_t i) { return 10 * i + 9; });
    return selected(std::move(whole), size - tests, [](int64_t i) { return i + i / 9; });
}

}  // namespace convoy
