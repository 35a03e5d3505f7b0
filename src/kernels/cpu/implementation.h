// The cpu backend's ways of computing: one explicit, ordered list of implementations, the reference last. Each says for a problem which
// candidates it offers (none: it refuses) and prepares the kernel of a candidate that was chosen.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "kernels/backend.h"
#include "program/target.h"

namespace convoy::cpu {

struct CpuContext {
    int threads = 1;
    int64_t block = 16;              // channels in a block of the blocked layout: one vector register of floats
    int64_t cached_bytes = 8 << 20;  // what should stay in the cache between two passes: decides in what chunks tiles are transformed
};

class Implementation {
  public:
    virtual ~Implementation() = default;
    // The first word of its algorithms' names: "onednn" for "onednn:winograd".
    virtual std::string_view name() const = 0;
    virtual std::vector<Candidate> candidates(const Problem& problem, const CpuContext& context) const = 0;
    // Its algorithms that are made for such problems and do not take this one.
    virtual std::vector<Refusal> refusals(const Problem&, const CpuContext&) const { return {}; }
    virtual std::unique_ptr<Kernel> prepare(const KernelRequest& request, const CpuContext& context) const = 0;
};

// In the order in which they are asked.
const std::vector<const Implementation*>& implementations();

}  // namespace convoy::cpu
