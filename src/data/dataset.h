// What training reads: samples by number, whole or in part, written into memory that the caller owns.
//
// A dataset is a source (files, an archive, a generator) seen through what is done to its samples (crops, flips, normalisation). What is common to all is
// done outside: `subset` takes some of the samples, BatchOrder shuffles them and cuts them into batches, BatchPart says which part of a batch a rank reads,
// and Prefetcher reads ahead with several threads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/tensor.h"

namespace convoy {

enum class TargetKind : uint8_t {
    Class,       // one label per sample
    Voxel,       // one label per pixel or voxel
    Regression,  // real numbers
};
std::string_view name_of(TargetKind kind);

enum class Split : uint8_t { Train, Test };
std::string_view name_of(Split split);

// Of one sample; the batch dim N comes first in the tensors and is not part of these shapes.
struct DatasetInfo {
    std::string name;
    Shape input;  // C, then spatial dims
    TargetKind target = TargetKind::Class;
    Shape target_shape;                    // Class: none; Voxel: the spatial dims; Regression: any
    int64_t classes = 0;                   // labels are 0..classes-1; 0 for Regression
    std::vector<std::string> class_names;  // none, or one for each class
    std::string transforms;                // what is done to samples, in words; "" for nothing

    bool operator==(const DatasetInfo&) const = default;
};

// Error unless the shapes are positive and fit the kind of target.
void require_valid(const DatasetInfo& info);

// The targets for people: "3 classes: cat, dog, owl", "2 classes of voxels", "4 real numbers for each sample".
std::string targets_text(const DatasetInfo& info);

// The tensors for batches of up to `count` samples: input [count, input...] of `type`; target [count, target...] of i32 for labels, of
// `type` for Regression. Requires f32 or f64.
Tensor make_input(const DatasetInfo& info, int64_t count, DType type);
Tensor make_target(const DatasetInfo& info, int64_t count, DType type);
// The type of the targets of a dataset whose inputs are read as `type`.
DType target_type(const DatasetInfo& info, DType type);

// A sample in an epoch. What is random about it is a function of the two and the seed, whoever reads it.
struct SampleId {
    int64_t index = 0, epoch = 0;
};

// Where a sample, or a part of it, goes: dense boxes of the input and of the target (without N). Null: not wanted.
struct SampleOut {
    DType type = DType::f32;  // of the input and of regression targets: f32 or f64; labels are i32
    Box input_box, target_box;
    std::byte* input = nullptr;
    std::byte* target = nullptr;
};

// What one thread needs while it reads; each dataset has its own.
class Scratch {
  public:
    virtual ~Scratch() = default;
};

// A file, or a part of one, that could not be used and was passed over.
struct SkippedSample {
    std::string name, why;
    bool operator==(const SkippedSample&) const = default;
};

// Reading changes nothing that can be seen, and may be done by several threads at once.
class Dataset {
  public:
    virtual ~Dataset() = default;

    virtual const DatasetInfo& info() const = 0;
    virtual int64_t size() const = 0;
    // What a thread must give to read_sample; may be null.
    virtual std::unique_ptr<Scratch> make_scratch() const { return nullptr; }
    // Reads a sample; returns how many bytes were taken from where the data are kept. Requires boxes inside the sample, and a scratch of this dataset that no
    // other thread uses. Error, naming the file or the sample, when it is damaged.
    virtual int64_t read_sample(SampleId id, const SampleOut& out, Scratch* scratch) const = 0;
    // A sample as it is kept, for people: where it is and how large.
    virtual std::string describe(int64_t index) const;
    // Samples that could not be read so far, each once, in no special order; others took their places.
    virtual std::vector<SkippedSample> skipped() const { return {}; }

    // Writes whole samples into the first rows of `input` and `target`, in that order; later rows stay as they are. Requires tensors as
    // made by make_input and make_target with at least as many rows; Bug otherwise, or when an index is not in 0..size-1.
    void read(std::span<const int64_t> indices, Tensor& input, Tensor& target, int64_t epoch = 0) const;
};

// Samples [first, first + count) of another dataset. Error when it has fewer.
std::unique_ptr<Dataset> subset(std::unique_ptr<Dataset> whole, int64_t first, int64_t count);
// Of a dataset without splits: every tenth sample is for testing (those with index % 10 == 9), the others for training. Error when there are fewer than 10.
std::unique_ptr<Dataset> one_of_ten(std::unique_ptr<Dataset> whole, Split split);

}  // namespace convoy
