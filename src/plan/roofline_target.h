// A device without kernels: what a GPU-like backend would offer, so that programs can be compiled for machines that are not here.
#pragma once

#include "plan/machine.h"
#include "program/target.h"

namespace convoy {

// All operands plain, no workspace; elementwise work in place; the usual patterns fused (convolution + bias + ReLU, normalise + add + ReLU,
// weight and bias gradients, updates together where they are not cores, which gain nothing by it). Activations in the compute type, everything precise in f32 (f64 with f64).
class RooflineTarget : public Target {
  public:
    explicit RooflineTarget(DeviceKind device) : device_(std::move(device)) {}
    std::string name() const override { return "roofline"; }
    DType storage(Element element, DType compute) const override;
    std::vector<Candidate> candidates(const Problem& problem) const override;
    double copy_bytes_per_second() const override { return device_.memory_bandwidth; }
    bool on_host() const override { return device_.joins; }

  private:
    DeviceKind device_;
};

}  // namespace convoy
