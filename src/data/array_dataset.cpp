#include "data/array_dataset.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "data/runs.h"

namespace convoy {

namespace {

// How the spatial dims of what comes out lie in the source: dim d runs along the source's axis[d], backwards where flip[d], from origin[axis[d]] on.
struct Placement {
    std::array<int, Dims::kMost> axis{};
    std::array<bool, Dims::kMost> flip{};
    Dims origin;
    bool turned = false;  // not merely cut out
};

class ArrayScratch : public Scratch {
  public:
    std::byte* room(int64_t bytes) {
        if (static_cast<int64_t>(memory_.size()) < bytes) memory_.resize(static_cast<size_t>(bytes));
        return memory_.data();
    }

  private:
    std::vector<std::byte> memory_;
};

// The box of the source that a box of what comes out is made of. `lead` dims before the spatial ones stay as they are; `size` is spatial.
Box source_box(const Box& box, int lead, const Shape& size, const Placement& placement) {
    Box result = box;
    for (int d = 0; d < size.size(); ++d) {
        const auto at = static_cast<size_t>(d);
        const int from = placement.axis[at];
        const int64_t begin = placement.flip[at] ? size[d] - box.end(lead + d) : box.begin(lead + d);
        result.origin[lead + from] = placement.origin[from] + begin;
        result.shape[lead + from] = box.shape[lead + d];
    }
    return result;
}

// Writes `box` of what comes out from the dense source box it is made of.
template <class T>
void turn(const T* source, const Box& from, const Box& box, int lead, const Placement& placement, T* out) {
    const Dims strides = row_major_strides(from.shape);
    const int rank = box.shape.size();
    Dims step = strides;
    int64_t at = 0;
    for (int d = lead; d < rank; ++d) {
        const auto spatial = static_cast<size_t>(d - lead);
        const int axis = lead + placement.axis[spatial];
        step[d] = placement.flip[spatial] ? -strides[axis] : strides[axis];
        if (placement.flip[spatial]) at += strides[axis] * (box.shape[d] - 1);
    }
    Dims index = Dims::filled(rank, 0);
    const int last = rank - 1;
    const int64_t rows = numel(box.shape) / box.shape[last];
    for (int64_t row = 0; row < rows; ++row) {
        for (int64_t i = 0; i < box.shape[last]; ++i) *out++ = source[at + i * step[last]];
        for (int d = last; d-- > 0;) {
            at += step[d];
            if (++index[d] < box.shape[d]) break;
            at -= step[d] * box.shape[d];
            index[d] = 0;
        }
    }
}

class ArrayDataset final : public Dataset {
  public:
    ArrayDataset(std::unique_ptr<ArraySource> source, const ArrayOptions& options)
        : source_(std::move(source)), transform_(options.transform) {
        const ArraySource::Array &x = source_->input(), &y = source_->target();
        const std::string first = source_->name(0);
        info_.name = options.name;
        require(!x.shape.empty(), "{}: expected an input with channels and spatial dims, found {}", first, to_string(x.shape));
        info_.input = x.shape;
        spatial_ = x.shape.slice(1);
        if (!transform_.size.empty()) cut_to(transform_.size, first);
        require_transform(x.shape);
        if (is_floating(y.dtype)) {
            info_.target = TargetKind::Regression;
            info_.target_shape = y.shape;
        } else {
            const bool one = numel(y.shape) == 1 && y.shape.size() <= 1;
            require(one || y.shape == x.shape.slice(1),
                    "{}: labels are integers, one for a sample or one for each of {} points of it; found labels of {}", first,
                    to_string(x.shape.slice(1)), to_string(y.shape));
            info_.target = one ? TargetKind::Class : TargetKind::Voxel;
            if (!one) info_.target_shape = spatial_;
            count_classes(options);
        }
        require_valid(info_);
        describe_transform();
    }

    const DatasetInfo& info() const override { return info_; }
    int64_t size() const override { return source_->size(); }
    std::unique_ptr<Scratch> make_scratch() const override { return std::make_unique<ArrayScratch>(); }

    std::string describe(int64_t index) const override {
        const ArraySource::Array &x = source_->input(), &y = source_->target();
        return fmt::format("{}: x {} {}, y {} {}", source_->name(index), name_of(x.dtype), to_string(x.shape), name_of(y.dtype),
                           to_string(y.shape));
    }

    int64_t read_sample(SampleId id, const SampleOut& out, Scratch* scratch) const override {
        const Placement placement = placement_of(id);
        const DType label_type = target_type(info_, out.type);
        const bool voxels = info_.target == TargetKind::Voxel;
        Box from, labels = out.target_box;
        if (out.input) from = source_box(out.input_box, 1, spatial_, placement);
        if (out.target && voxels) labels = source_box(out.target_box, 0, spatial_, placement);
        if (info_.target == TargetKind::Class) labels = Box::whole(source_->target().shape);
        const int64_t input_bytes = out.input && placement.turned ? numel(from.shape) * size_of(out.type) : 0;
        const int64_t label_bytes = out.target && voxels && placement.turned ? numel(labels.shape) * size_of(label_type) : 0;
        std::byte* const room = static_cast<ArrayScratch&>(*scratch).room(input_bytes + label_bytes);
        source_->read(id.index, {from, out.type, input_bytes > 0 ? room : out.input},
                      {labels, label_type, label_bytes > 0 ? room + input_bytes : out.target});
        if (out.type == DType::f64)
            finish<double>(out, from, placement, input_bytes > 0 ? room : nullptr);
        else
            finish<float>(out, from, placement, input_bytes > 0 ? room : nullptr);
        if (label_bytes > 0)
            turn(reinterpret_cast<const int32_t*>(room + input_bytes), labels, out.target_box, 0, placement,
                 reinterpret_cast<int32_t*>(out.target));
        if (out.target && info_.target != TargetKind::Regression)
            require_labels(id.index, reinterpret_cast<const int32_t*>(out.target), numel(labels.shape));
        return (out.input ? numel(from.shape) * source_->input().element_bytes : 0) +
               (out.target ? numel(labels.shape) * source_->target().element_bytes : 0);
    }

  private:
    void cut_to(const Shape& size, const std::string& first) {
        require(size.size() == spatial_.size(), "{}: samples have {} spatial dims ({}); expected an input with as many, found {}", first,
                spatial_.size(), to_string(spatial_), to_string(size));
        for (int d = 0; d < size.size(); ++d)
            require(size[d] <= spatial_[d], "{}: samples are {} large; there is no part of {} in them", first, to_string(spatial_),
                    to_string(size));
        spatial_ = size;
        info_.input = join({info_.input[0]}, spatial_);
    }

    void require_transform(const Shape& shape) const {
        const Augment& augment = transform_.augment;
        require(augment.jitter == 0 && augment.pad == 0 && augment.crop != CropKind::RandomResized,
                "dataset \"{}\" has arrays; expected an augmentation of random-crop, flip and rot90, found {}", info_.name,
                to_string(augment));
        require_channels(transform_.normalize, shape[0], info_.name);
        const bool cube = std::all_of(spatial_.begin(), spatial_.end(), [&](int64_t size) { return size == spatial_[0]; });
        require(!augment.rotate || (cube && spatial_.size() >= 2), "dataset \"{}\": rot90 needs samples as long as wide, found {}",
                info_.name, to_string(spatial_));
        const bool regression = is_floating(source_->target().dtype) && source_->target().shape == shape.slice(1);
        require(!regression || augment == Augment{}, "dataset \"{}\" has a real number for each point; augmentation would not move them",
                info_.name);
    }

    void count_classes(const ArrayOptions& options) {
        info_.class_names = options.class_names;
        info_.classes = options.classes > 0            ? options.classes
                        : source_->classes()           ? *source_->classes()
                        : !options.class_names.empty() ? static_cast<int64_t>(options.class_names.size())
                                                       : largest_label() + 1;
        if (static_cast<int64_t>(info_.class_names.size()) != info_.classes) info_.class_names.clear();
    }

    int64_t largest_label() const {
        const Box box = Box::whole(source_->target().shape);
        std::vector<int32_t> labels(static_cast<size_t>(numel(box.shape)));
        int32_t largest = 0;
        for (int64_t i = 0; i < source_->size(); ++i) {
            source_->read(i, {}, {box, DType::i32, reinterpret_cast<std::byte*>(labels.data())});
            for (const int32_t label : labels) {
                require(label >= 0, "{}: found label {}; expected labels of 0 and more", source_->name(i), label);
                largest = std::max(largest, label);
            }
        }
        return largest;
    }

    void describe_transform() {
        std::vector<std::string> words;
        if (transform_.augment != Augment{}) words.push_back(to_string(transform_.augment));
        const bool cut = spatial_ != source_->input().shape.slice(1);
        if (cut)
            words.push_back(fmt::format("{}to {}", transform_.augment.crop == CropKind::Centre ? "centre-crop " : "", to_string(spatial_)));
        if (transform_.normalize != Normalize{}) words.push_back("normalize " + to_string(transform_.normalize));
        info_.transforms = fmt::format("{}", fmt::join(words, ", "));
    }

    Placement placement_of(SampleId id) const {
        const int rank = spatial_.size();
        const Shape whole = source_->input().shape.slice(1);
        Placement result;
        result.origin = Dims::filled(rank, 0);
        const Augment& augment = transform_.augment;
        SampleRandom random(transform_.seed, id);
        for (int d = 0; d < rank; ++d) {
            result.axis[static_cast<size_t>(d)] = d;
            const int64_t room = whole[d] - spatial_[d];
            result.origin[d] = augment.crop == CropKind::Random ? random.below(room + 1) : room / 2;
        }
        if (augment.rotate) rotate(result, rank, random);
        if (augment.flip)
            for (int d = 0; d < rank; ++d)
                if (random.coin()) result.flip[static_cast<size_t>(d)] ^= true;
        for (int d = 0; d < rank; ++d)
            result.turned = result.turned || result.flip[static_cast<size_t>(d)] || result.axis[static_cast<size_t>(d)] != d;
        return result;
    }

    // Any order of the axes, each forwards or backwards, except that the last one's direction makes it a rotation and not a mirror image.
    static void rotate(Placement& placement, int rank, SampleRandom& random) {
        bool odd = false;
        for (int d = rank - 1; d > 0; --d) {
            const auto other = static_cast<size_t>(random.below(d + 1));
            if (other == static_cast<size_t>(d)) continue;
            std::swap(placement.axis[static_cast<size_t>(d)], placement.axis[other]);
            odd = !odd;
        }
        for (int d = 0; d < rank; ++d) {
            const bool flip = d + 1 < rank ? random.coin() : odd;
            placement.flip[static_cast<size_t>(d)] = flip;
            odd = odd != flip;
        }
    }

    // Turns the input, if it lies in `room`, and normalises it.
    template <class T>
    void finish(const SampleOut& out, const Box& from, const Placement& placement, const std::byte* room) const {
        if (!out.input || out.input_box.empty()) return;
        T* const values = reinterpret_cast<T*>(out.input);
        if (room) turn(reinterpret_cast<const T*>(room), from, out.input_box, 1, placement, values);
        const double unit = source_->input().dtype == DType::u8 ? 255 : 1;
        if (unit == 1 && transform_.normalize == Normalize{}) return;
        const int64_t channels = out.input_box.shape[0], each = numel(out.input_box.shape) / channels;
        for (int64_t c = 0; c < channels; ++c) {
            const double deviation = transform_.normalize.deviation_of(out.input_box.origin[0] + c);
            const auto factor = static_cast<T>(1 / (unit * deviation));
            const auto offset = static_cast<T>(-transform_.normalize.mean_of(out.input_box.origin[0] + c) / deviation);
            for (int64_t i = c * each; i < (c + 1) * each; ++i) values[i] = values[i] * factor + offset;
        }
    }

    void require_labels(int64_t index, const int32_t* labels, int64_t count) const {
        for (int64_t i = 0; i < count; ++i)
            require(labels[i] >= 0 && labels[i] < info_.classes, "{}: found label {}; expected labels in 0..{}", source_->name(index),
                    labels[i], info_.classes - 1);
    }

    std::unique_ptr<ArraySource> source_;
    Transform transform_;
    DatasetInfo info_;
    Shape spatial_;  // of what comes out
};

}  // namespace

std::unique_ptr<Dataset> make_array_dataset(std::unique_ptr<ArraySource> source, const ArrayOptions& options) {
    return std::make_unique<ArrayDataset>(std::move(source), options);
}

}  // namespace convoy
