// Samples that are arrays in files: volumes, pictures as numbers, anything with channels and up to six spatial dims; with classes, a label for each point, or
// real numbers to predict. Read a box at a time: a rank that has a slab of every sample takes only that slab from the file.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/transform.h"

namespace convoy {

// Where the arrays come from. For several threads at once.
class ArraySource {
  public:
    virtual ~ArraySource() = default;

    struct Array {
        Shape shape;               // of one sample
        DType dtype = DType::f32;  // as NpyView::kept
        int64_t element_bytes = 0;
    };
    virtual int64_t size() const = 0;
    virtual const Array& input() const = 0;
    virtual const Array& target() const = 0;
    virtual std::string name(int64_t index) const = 0;
    // What the file itself says, if it does.
    virtual std::optional<int64_t> classes() const { return std::nullopt; }

    struct Wanted {
        Box box;
        DType type = DType::f32;
        std::byte* out = nullptr;  // null: nothing
    };
    // Boxes of the input and the target of a sample, converted.
    virtual void read(int64_t index, const Wanted& input, const Wanted& target) const = 0;
};

// x.npy and y.npy, mapped; arrays of an npz file, under any names; datasets x and y of an HDF5 file for all samples; files of a sample each.
std::unique_ptr<ArraySource> open_npy_pair(const std::filesystem::path& x, const std::filesystem::path& y);
std::unique_ptr<ArraySource> open_npz(const std::filesystem::path& file, const std::string& x, const std::string& y);
std::unique_ptr<ArraySource> open_hdf5_set(const std::filesystem::path& file);
std::unique_ptr<ArraySource> open_hdf5_samples(const std::vector<std::filesystem::path>& files);
// The names of the arrays in an npz file.
std::vector<std::string> npz_names(const std::filesystem::path& file);

struct ArrayOptions {
    std::string name;
    int64_t classes = 0;                   // 0: what the file says, or the names, or the largest label and one
    std::vector<std::string> class_names;  // none: numbers
    Transform transform;
};
// Error when shapes and types are not those of a dataset, or the transform is not one for arrays (jitter, padding, random-resized-crop).
std::unique_ptr<Dataset> make_array_dataset(std::unique_ptr<ArraySource> source, const ArrayOptions& options);

}  // namespace convoy
