// What was measured: seconds of candidates and copies under their canonical keys (program/key.h), and how tuned programs did as a whole. A plain value, in and
// out of JSON.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/json_fwd.h"
#include "program/costs.h"

namespace convoy {

// A whole step, compiled with measured costs and without.
struct Verdict {
    double untuned_seconds = 0, tuned_seconds = 0;
    double ratio() const { return tuned_seconds / untuned_seconds; }
    bool better() const { return tuned_seconds < untuned_seconds; }
    bool operator==(const Verdict&) const = default;
};

struct CostTable {
    std::map<std::string, std::map<std::string, double>> kernels;  // by problem, by candidate
    std::map<std::string, double> copies;
    std::map<std::string, Verdict> verdicts;  // by what was compiled
    bool operator==(const CostTable&) const = default;

    // Takes over what is not known here; what is known stays, so that choices made from it stay too.
    void add(const CostTable& other);
};

Json to_json(const CostTable& table);
// Error says what was expected and found where it is none.
CostTable cost_table_from_json(const Json& json);

// Costs as measured. A problem of which nothing was measured has the target's estimates; a candidate that was left out when others of its problem were
// measured was not worth it, and costs no less than the slowest of them. Copies count `copy_weight` times: between the kernels of a step one costs more than
// alone, by what it drives out of the caches, and a choice that changes layouts only where that pays well is worth a try of its own.
class MeasuredCosts : public Costs {
  public:
    MeasuredCosts(std::shared_ptr<const CostTable> table, double copy_bytes_per_second, double copy_weight = 1)
        : table_(std::move(table)), copy_bytes_per_second_(copy_bytes_per_second), copy_weight_(copy_weight) {}
    double seconds(const Problem& problem, const Candidate& candidate) const override;
    double copy_seconds(const CopyProblem& copy) const override;
    const CostTable& table() const { return *table_; }
    double copy_bytes_per_second() const { return copy_bytes_per_second_; }
    double copy_weight() const { return copy_weight_; }

  private:
    std::shared_ptr<const CostTable> table_;
    double copy_bytes_per_second_;
    double copy_weight_;
};

// With all that decides what is chosen by them: the same again, wherever they are read.
Json to_json(const MeasuredCosts& costs);
MeasuredCosts measured_costs_from_json(const Json& json);

}  // namespace convoy
