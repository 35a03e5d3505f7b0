// What tests of convolutions on a GPU share: random operands in its memory. Skipped where there is no GPU.
#pragma once

#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cuda/memory.h"
#include "kernels/patterns.h"

namespace convoy::cuda {

class DeviceConvTest : public testing::Test {
  protected:
    void SetUp() override {
        if (const std::string why = why_no_device(); !why.empty()) GTEST_SKIP() << why;
        device_ = std::make_unique<Device>(0);
        device_->use();
    }

    int64_t between(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }

    Operand operand(const Shape& shape, const Layout& layout) {
        memory_.push_back(std::make_unique<DeviceMemory>(*device_, numel(shape) * 4));
        std::vector<float> values(static_cast<size_t>(numel(shape)));
        std::normal_distribution<float> normal;
        for (float& v : values) v = normal(random_);
        check(cudaMemcpy(memory_.back()->data(), values.data(), values.size() * 4, cudaMemcpyHostToDevice), "cudaMemcpy");
        return {memory_.back()->data(), TensorDesc::whole(shape, DType::f32), layout};
    }
    std::vector<float> read(const Operand& o) {
        device_->synchronize();
        std::vector<float> values(static_cast<size_t>(numel(o.desc.shape)));
        check(cudaMemcpy(values.data(), o.data, values.size() * 4, cudaMemcpyDeviceToHost), "cudaMemcpy");
        return values;
    }

    std::mt19937 random_{7};
    std::unique_ptr<Device> device_;
    std::vector<std::unique_ptr<DeviceMemory>> memory_;
};

}  // namespace convoy::cuda
