// Arrays of samples in npy, npz and HDF5 files.
#include <algorithm>

#include "base/error.h"
#include "data/archive/archive.h"
#include "data/array_dataset.h"
#include "data/bytes.h"
#include "data/hdf5/hdf5.h"
#include "data/npy.h"
#include "data/runs.h"

namespace convoy {

namespace {

namespace fs = std::filesystem;

using Array = ArraySource::Array;
using Wanted = ArraySource::Wanted;

// One sample's box in the array of all of them.
Box in_set(int64_t index, const Box& box) { return {join({index}, box.origin), join({1}, box.shape)}; }

// The samples' arrays, from those of the whole set.
void require_set(const std::string& name, const Shape& x, const Shape& y) {
    require(x.size() >= 2 && !y.empty(),
            "{}: expected x with samples first, then channels and spatial dims, and y with samples first; found x {} and y {}", name,
            to_string(x), to_string(y));
    require(x[0] == y[0], "{}: expected as many targets as inputs, found {} of x and {} of y", name, x[0], y[0]);
    require(numel(x) > 0 && numel(y) > 0, "{}: expected at least one sample of at least one number, found x {} and y {}", name,
            to_string(x), to_string(y));
}

// An array of an npy file, wherever its bytes are.
class NpyArray {
  public:
    NpyArray(std::string_view bytes, const std::string& name) : view_(view_npy(bytes, name)) {
        require(!view_.fortran, "{}: expected row-major order, found Fortran's; save it with numpy.ascontiguousarray", name);
    }
    const Shape& shape() const { return view_.shape; }
    Array sample() const { return {view_.shape.slice(1), view_.kept, view_.element_bytes}; }
    void read(int64_t index, const Wanted& wanted) const {
        if (!wanted.out) return;
        const int64_t unit = size_of(wanted.type);
        for_each_run(view_.shape, in_set(index, wanted.box),
                     [&](int64_t from, int64_t to, int64_t count) { view_.convert(from, count, wanted.type, wanted.out + to * unit); });
    }

  private:
    NpyView view_;
};

class NpySet final : public ArraySource {
  public:
    // `keep` owns the bytes.
    NpySet(std::shared_ptr<const void> keep, std::string name, const NpyArray& x, const NpyArray& y)
        : keep_(std::move(keep)), name_(std::move(name)), x_(x), y_(y), input_(x.sample()), target_(y.sample()) {
        require_set(name_, x.shape(), y.shape());
    }
    int64_t size() const override { return x_.shape()[0]; }
    const Array& input() const override { return input_; }
    const Array& target() const override { return target_; }
    std::string name(int64_t index) const override { return fmt::format("{}, sample {}", name_, index); }
    void read(int64_t index, const Wanted& input, const Wanted& target) const override {
        x_.read(index, input);
        y_.read(index, target);
    }

  private:
    std::shared_ptr<const void> keep_;
    std::string name_;
    NpyArray x_, y_;
    Array input_, target_;
};

void read_hdf5(const Hdf5File& file, const char* array, const Box& box, const Wanted& wanted) {
    if (wanted.out) file.read(array, box, wanted.type, wanted.out);
}

class Hdf5Set final : public ArraySource {
  public:
    explicit Hdf5Set(const fs::path& path) : name_(path.string()), file_(path) {
        const Hdf5Array &x = file_.array("x"), &y = file_.array("y");
        require_set(name_, x.shape, y.shape);
        input_ = {x.shape.slice(1), x.dtype, x.element_bytes};
        target_ = {y.shape.slice(1), y.dtype, y.element_bytes};
    }
    int64_t size() const override { return file_.array("x").shape[0]; }
    const Array& input() const override { return input_; }
    const Array& target() const override { return target_; }
    std::string name(int64_t index) const override { return fmt::format("{}, sample {}", name_, index); }
    std::optional<int64_t> classes() const override { return file_.attribute("y", "classes"); }
    void read(int64_t index, const Wanted& input, const Wanted& target) const override {
        read_hdf5(file_, "x", in_set(index, input.box), input);
        read_hdf5(file_, "y", in_set(index, target.box), target);
    }

  private:
    std::string name_;
    Hdf5File file_;
    Array input_, target_;
};

// The first file says what all of them must be.
class Hdf5Samples final : public ArraySource {
  public:
    explicit Hdf5Samples(std::vector<fs::path> files) : files_(std::move(files)) {
        const Hdf5File first(files_.at(0));
        const Hdf5Array &x = first.array("x"), &y = first.array("y");
        require(numel(x.shape) > 0 && numel(y.shape) > 0, "{}: expected at least one number in x and y, found {} and {}",
                files_[0].string(), to_string(x.shape), to_string(y.shape));
        input_ = {x.shape, x.dtype, x.element_bytes};
        target_ = {y.shape, y.dtype, y.element_bytes};
        classes_ = first.attribute("y", "classes");
    }
    int64_t size() const override { return static_cast<int64_t>(files_.size()); }
    const Array& input() const override { return input_; }
    const Array& target() const override { return target_; }
    std::string name(int64_t index) const override { return files_[static_cast<size_t>(index)].string(); }
    std::optional<int64_t> classes() const override { return classes_; }
    void read(int64_t index, const Wanted& input, const Wanted& target) const override {
        const Hdf5File file(files_[static_cast<size_t>(index)]);
        require_like_first(file, "x", input_, index);
        require_like_first(file, "y", target_, index);
        read_hdf5(file, "x", input.box, input);
        read_hdf5(file, "y", target.box, target);
    }

  private:
    void require_like_first(const Hdf5File& file, const char* array, const Array& first, int64_t index) const {
        const Hdf5Array& found = file.array(array);
        require(found.shape == first.shape && found.dtype == first.dtype, "{}: expected {} of {} {}, as in {}; found {} {}", name(index),
                array, name_of(first.dtype), to_string(first.shape), name(0), name_of(found.dtype), to_string(found.shape));
    }

    std::vector<fs::path> files_;
    Array input_, target_;
    std::optional<int64_t> classes_;
};

const ArchiveEntry& entry_of(const Archive& archive, const std::string& array, const fs::path& file) {
    const auto& entries = archive.entries();
    const auto at = std::find_if(entries.begin(), entries.end(), [&](const ArchiveEntry& e) { return e.name == array + ".npy"; });
    require(at != entries.end(), "{}: expected an array \"{}\", found none", file.string(), array);
    return *at;
}

}  // namespace

std::unique_ptr<ArraySource> open_npy_pair(const fs::path& x, const fs::path& y) {
    const auto files = std::make_shared<std::pair<MappedFile, MappedFile>>(MappedFile(x), MappedFile(y));
    return std::make_unique<NpySet>(files, x.string(), NpyArray(files->first.bytes(), x.string()),
                                    NpyArray(files->second.bytes(), y.string()));
}

std::unique_ptr<ArraySource> open_npz(const fs::path& file, const std::string& x, const std::string& y) {
    const auto archive = std::make_shared<Archive>(file);
    const auto array = [&](const std::string& name) {
        return NpyArray(entry_of(*archive, name, file).bytes, fmt::format("{}:{}", file.string(), name));
    };
    return std::make_unique<NpySet>(archive, file.string(), array(x), array(y));
}

std::vector<std::string> npz_names(const fs::path& file) {
    std::vector<std::string> names;
    const Archive archive(file);
    for (const ArchiveEntry& entry : archive.entries())
        if (entry.name.ends_with(".npy")) names.push_back(entry.name.substr(0, entry.name.size() - 4));
    return names;
}

std::unique_ptr<ArraySource> open_hdf5_set(const fs::path& file) { return std::make_unique<Hdf5Set>(file); }

std::unique_ptr<ArraySource> open_hdf5_samples(const std::vector<fs::path>& files) { return std::make_unique<Hdf5Samples>(files); }

}  // namespace convoy
