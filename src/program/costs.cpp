#include "program/costs.h"

namespace convoy {

double EstimatedCosts::seconds(const Problem&, const Candidate& candidate) const { return candidate.seconds; }

double EstimatedCosts::copy_seconds(const CopyProblem& copy) const { return estimated_copy_seconds(copy, target_.copy_bytes_per_second()); }

double estimated_copy_seconds(const CopyProblem& copy, double bytes_per_second) {
    const int64_t bytes = bytes_of(copy.shape, copy.from_type, copy.from) + bytes_of(copy.shape, copy.to_type, copy.to);
    return static_cast<double>(bytes) / bytes_per_second;
}

}  // namespace convoy
