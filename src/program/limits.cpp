#include "program/limits.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "program/key.h"

namespace convoy {

std::string_view name_of(Numerics numerics) { return numerics == Numerics::Exact ? "exact" : "fast"; }

Numerics numerics_named(std::string_view name) {
    require(name == "exact" || name == "fast", "numerics: expected exact or fast, found \"{}\"", name);
    return name == "exact" ? Numerics::Exact : Numerics::Fast;
}

bool within(const Candidate& candidate, const Limits& limits) {
    return candidate.workspace_bytes <= limits.workspace_bytes &&
           (limits.numerics == Numerics::Fast || candidate.numerics == Numerics::Exact);
}

std::vector<Candidate> LimitedTarget::candidates(const Problem& problem) const {
    const std::string key = key_of(problem);
    const auto [first, last] = known_.equal_range(key);
    for (auto it = first; it != last; ++it)
        if (it->second.problem == problem) return it->second.candidates;
    std::vector<Candidate> all = target_.candidates(problem), some;
    std::copy_if(all.begin(), all.end(), std::back_inserter(some), [&](const Candidate& c) { return within(c, limits_); });
    if (some.empty() && problem.steps.size() == 1 && !all.empty()) {
        int64_t least = std::numeric_limits<int64_t>::max();
        for (const Candidate& c : all)
            if (within(c, {.numerics = limits_.numerics})) least = std::min(least, c.workspace_bytes);
        fail("{} cannot compute {} with {} bytes of workspace and {} numerics; the least it needs is {} bytes", name(), key,
             limits_.workspace_bytes, name_of(limits_.numerics), least);
    }
    if (!some.empty()) warn_if_much_slower(key, some, all);
    known_.emplace(key, Known{problem, some});
    return some;
}

void LimitedTarget::warn_if_much_slower(const std::string& key, const std::vector<Candidate>& some,
                                        const std::vector<Candidate>& all) const {
    constexpr double kMuch = 8;
    const auto sooner = [](const Candidate& a, const Candidate& b) { return a.seconds < b.seconds; };
    const Candidate &left = *std::min_element(some.begin(), some.end(), sooner), &best = *std::min_element(all.begin(), all.end(), sooner);
    if (left.seconds <= kMuch * best.seconds) return;
    const std::string workspace = limits_.workspace_bytes == Limits{}.workspace_bytes ? "any" : std::to_string(limits_.workspace_bytes);
    warn_once(
        "limits of " + name(),
        "with {} numerics and {} bytes of workspace some of this is much slower on {}: {} by {} instead of {}, estimated at {:.0f} times "
        "the time",
        name_of(limits_.numerics), workspace, name(), key, left.algorithm, best.algorithm, left.seconds / best.seconds);
}

}  // namespace convoy
