// What a graph of cuDNN's asks for: a convolution, and pointwise operations behind it.
#pragma once

#include <array>
#include <vector>

#include "kernels/cuda/stand_in/descriptors.h"

namespace stand_in::cudnn {

constexpr int kDims = 5;
using Dims5 = std::array<int64_t, kDims>;

struct Tensor {
    int64_t uid = 0;
    cudaDataType type = CUDA_R_32F;
    int given = 0;  // dims
    Dims5 dims{}, strides{};
    bool is_virtual = false;

    int64_t at(const Dims5& i) const {
        int64_t place = 0;
        for (int d = 0; d < kDims; ++d) place += i[static_cast<size_t>(d)] * strides[static_cast<size_t>(d)];
        return place;
    }
    int64_t count() const { return dims[0] * dims[1] * dims[2] * dims[3] * dims[4]; }
    // Channels are neighbours in memory.
    bool channels_last() const { return strides[1] == 1; }
};

enum class Direction { Forward, GradInput, GradWeight };
struct Pointwise {
    bool add = false;  // else a ReLU
    double slope = 0;
    Tensor x, b, y;
};
struct Asked {
    Direction direction{};
    Tensor x, w, y;
    std::array<int64_t, 3> pad{}, stride{}, dilation{};
    std::vector<Pointwise> behind;

    const Tensor& result() const { return direction == Direction::Forward ? y : direction == Direction::GradInput ? x : w; }
    int64_t groups() const { return x.dims[1] / w.dims[1]; }
};

// A Refusal says what cuDNN does not take.
Tensor tensor_of(const Descriptor& descriptor);
Asked asked_of(const Descriptor& graph);

}  // namespace stand_in::cudnn
