// What a program may use of what a target offers, and the target as seen through those limits.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "program/target.h"

namespace convoy {

struct Limits {
    Numerics numerics = Numerics::Fast;                             // Exact: no transforms that cost digits
    int64_t workspace_bytes = std::numeric_limits<int64_t>::max();  // scratch memory of any one instruction
    bool operator==(const Limits&) const = default;
};

// "exact" or "fast".
std::string_view name_of(Numerics numerics);
// Error names the known ones.
Numerics numerics_named(std::string_view name);

bool within(const Candidate& candidate, const Limits& limits);

// Offers those of a target's candidates that are within the limits, warns where that costs much time, and remembers them: a compilation asks for the same problem many times. The target must outlive it.
// Not for several threads at once.
class LimitedTarget : public Target {
  public:
    LimitedTarget(const Target& target, const Limits& limits) : target_(target), limits_(limits) {}

    std::string name() const override { return target_.name(); }
    DType storage(Element element, DType compute) const override { return target_.storage(element, compute); }
    // Error when the target can do the problem, but not within the limits, and it is a single op, which cannot be done in parts.
    std::vector<Candidate> candidates(const Problem& problem) const override;
    std::vector<Refusal> refusals(const Problem& problem) const override { return target_.refusals(problem); }
    double copy_bytes_per_second() const override { return target_.copy_bytes_per_second(); }
    bool on_host() const override { return target_.on_host(); }

  private:
    void warn_if_much_slower(const std::string& key, const std::vector<Candidate>& some, const std::vector<Candidate>& all) const;

    struct Known {
        Problem problem;
        std::vector<Candidate> candidates;
    };
    const Target& target_;
    Limits limits_;
    mutable std::multimap<std::string, Known> known_;  // by key; problems of one key may still lie elsewhere in the whole
};

}  // namespace convoy
