// cuDNN's graph interface, as little of it as is needed: tensors, convolutions and pointwise operations make an operation graph; the library names
// engines for it, of which one becomes a plan that runs. Wraps the C descriptors; nothing of the library leaves this folder.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/device.h"
#include "kernels/patterns.h"

namespace convoy::cuda {

// A descriptor of the library, destroyed with the last copy.
class Descriptor {
  public:
    Descriptor() = default;
    explicit Descriptor(cudnnBackendDescriptorType_t type);

    template <class T>
    Descriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const std::vector<T>& values) {
        return set_raw(name, type, static_cast<int64_t>(values.size()), values.data());
    }
    template <class T>
    Descriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, T value) {
        return set_raw(name, type, 1, &value);
    }
    Descriptor& set(cudnnBackendAttributeName_t name, const Descriptor& other);
    Descriptor& set(cudnnBackendAttributeName_t name, const std::vector<Descriptor>& others);
    // Error when the library refuses what the attributes describe.
    Descriptor& finalize();
    cudnnBackendDescriptor_t get() const { return handle_.get(); }

  private:
    Descriptor& set_raw(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count, const void* values);
    std::shared_ptr<void> handle_;
};

// A tensor of a graph; `uid` is how a plan's runs name its memory. A virtual one exists only inside.
struct GraphTensor {
    int64_t uid;
    DType dtype;
    Dims dims, strides;
    bool is_virtual = false;
};

Descriptor describe(const GraphTensor& tensor);

// A graph of a convolution and what follows it.
class ConvGraph {
  public:
    // `compute` is what sums are made in.
    ConvGraph(const Window& window, DType compute) : window_(window), compute_(compute) {}

    void convolution(Direction direction, const GraphTensor& x, const GraphTensor& w, const GraphTensor& y);
    void add(const GraphTensor& x, const GraphTensor& b, const GraphTensor& y);
    void rectify(const GraphTensor& x, const GraphTensor& y, double slope_below);
    // Any other operation.
    void append(Descriptor operation) { operations_.push_back(std::move(operation)); }
    Descriptor finalize(Device& device) const;

  private:
    std::vector<Descriptor> operations_;
    Window window_;
    DType compute_;
};

// Which engines may be taken.
struct EnginePolicy {
    bool tensor_cores = true;  // off: neither those nor inputs rounded to fewer bits
    bool deterministic = true;
    bool transforms = true;  // Winograd's and Fourier's
};

// An engine with its settings; `name` says the same in words, from one run of the program to another.
struct EngineConfig {
    Descriptor config;
    int64_t engine;
    std::string name;
    bool fallback = false;  // slower than others, perhaps by orders of magnitude
};
// Those that the library names for the graph: the likely best setting of every engine first, then the others.
std::vector<EngineConfig> engine_configs(const Descriptor& graph, const EnginePolicy& policy);

// An engine made ready. Error when the library cannot do it after all.
class ExecutionPlan {
  public:
    ExecutionPlan(Device& device, const EngineConfig& engine);
    int64_t workspace_bytes() const { return workspace_bytes_; }
    // Binds memory by uid; before run().
    void bind(const std::vector<std::pair<int64_t, void*>>& memory, void* workspace);
    void run(Device& device) const;

  private:
    Descriptor plan_, pack_;
    int64_t workspace_bytes_ = 0;
};

}  // namespace convoy::cuda
