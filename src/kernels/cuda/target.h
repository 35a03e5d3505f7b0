// The cuda backend's Target: what its families offer, and how elements are stored.
#pragma once

#include "program/target.h"

namespace convoy::cuda {

class CudaTarget : public Target {
  public:
    std::string name() const override { return "cuda"; }
    // Activations in the compute type (tf32 is stored as f32); everything precise in f32, in f64 with f64.
    DType storage(Element element, DType compute) const override;
    std::vector<Candidate> candidates(const Problem& problem) const override;
    double copy_bytes_per_second() const override { return 2e12; }
    bool on_host() const override { return false; }
};

}  // namespace convoy::cuda
