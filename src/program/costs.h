// What things cost, as the compiler sees it: the seconds of a candidate for a problem, and of a copy of a tensor from one layout to another. Estimated by
// the target unless something better is given, such as measurements.
#pragma once

#include "program/target.h"

namespace convoy {

// A tensor that is copied: between layouts, and between floating types where those differ.
struct CopyProblem {
    Shape shape;
    DType from_type = DType::f32, to_type = DType::f32;
    Layout from, to;
    bool operator==(const CopyProblem&) const = default;
};

// Pure: the same questions have the same answers for as long as a compilation lasts.
class Costs {
  public:
    virtual ~Costs() = default;
    // The candidate is one of the problem's; its layouts are settled, none is "same".
    virtual double seconds(const Problem& problem, const Candidate& candidate) const = 0;
    virtual double copy_seconds(const CopyProblem& copy) const = 0;
};

// Read once and written once, at a rate that counts both.
double estimated_copy_seconds(const CopyProblem& copy, double bytes_per_second);

// The target's own estimates. The target must outlive it.
class EstimatedCosts : public Costs {
  public:
    explicit EstimatedCosts(const Target& target) : target_(target) {}
    double seconds(const Problem& problem, const Candidate& candidate) const override;
    double copy_seconds(const CopyProblem& copy) const override;

  private:
    const Target& target_;
};

}  // namespace convoy
