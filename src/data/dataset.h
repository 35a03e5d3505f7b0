// What training reads: samples by number, as batches written into memory that the caller owns.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

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
    Shape target_shape;   // Class: none; Voxel: the spatial dims; Regression: any
    int64_t classes = 0;  // labels are 0..classes-1; 0 for Regression

    bool operator==(const DatasetInfo&) const = default;
};

// Error unless the shapes are positive and fit the kind of target.
void require_valid(const DatasetInfo& info);

// The tensors for batches of up to `count` samples: input [count, input...] of `type`; target [count, target...] of i32 for labels, of
// `type` for Regression. Requires f32 or f64.
Tensor make_input(const DatasetInfo& info, int64_t count, DType type);
Tensor make_target(const DatasetInfo& info, int64_t count, DType type);

// Reading changes nothing, allocates nothing, and may be done by several threads at once.
class Dataset {
  public:
    virtual ~Dataset() = default;

    virtual const DatasetInfo& info() const = 0;
    virtual int64_t size() const = 0;
    // Writes sample `index` into row `row` of tensors as made by make_input and make_target. Unchecked: `read` is the entry.
    virtual void read_sample(int64_t index, int64_t row, Tensor& input, Tensor& target) const = 0;

    // Writes samples `indices` into the first rows of `input` and `target`, in that order; later rows stay as they are. Requires tensors as
    // made by make_input and make_target with at least as many rows; Bug otherwise, or when an index is not in 0..size-1.
    void read(std::span<const int64_t> indices, Tensor& input, Tensor& target) const;
};

// Samples [first, first + count) of another dataset. Error when it has fewer.
std::unique_ptr<Dataset> subset(std::unique_ptr<Dataset> whole, int64_t first, int64_t count);

}  // namespace convoy
