// What a plan makes of a model, from the programs of all its ranks: where things lie, what travels, what memory it takes. Nothing is run.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "program/compile.h"
#include "program/plan_spec.h"

namespace convoy {

struct LayerReport {
    std::string layer, kind;                           // "conv1", "conv 5x5 pad 2 + bias"
    std::vector<std::string> from;                     // the layers whose outputs it reads; none for one that reads the input
    std::string input, weight, output;                 // in words: "samples/2 height/2 +halo"; "" where there is none
    Shape local;                                       // of the output on the first rank of its grid
    Shape smallest;                                    // on the rank with least of it; as `local` where all have the same
    int64_t activation_bytes = 0, gradient_bytes = 0;  // sent in a step by the rank that sends most
};

// What a rank holds, and sends in a step.
struct RankSums {
    int64_t arena_bytes = 0, state_bytes = 0, activation_bytes = 0, gradient_bytes = 0;
};

// The same from one rank's program, and by layer what it sends: ranks can tell about themselves, and one puts it together.
struct RankReport {
    RankSums sums;
    std::map<std::string, RankSums> layers;
};
RankReport report_rank(const Program& program);
Json to_json(const RankReport& report);
RankReport rank_report_from_json(const Json& json);

struct PlanReport {
    std::vector<Grid> grids;
    std::vector<LayerReport> layers;  // in the order of the forward pass
    std::vector<RankSums> ranks;
    std::optional<RankSums> one;  // one process alone
};

// `graph` is a training graph. The first compiles the programs of all ranks and of one alone; the second is told about them. Error when the plan cannot be done.
PlanReport report_plan(const Graph& graph, const Plan& plan, const Target& target, DType dtype);
PlanReport report_plan(const Graph& graph, const Plan& plan, const std::vector<RankReport>& ranks);

Json to_json(const PlanReport& report);

// The report with what it is about and the plan itself: what `plan show --json` prints and a run directory keeps.
struct PlanSubject {
    std::string model;
    int64_t batch = 0;
    std::string spec, backend;
    DType dtype = DType::f32;
};
Json placement_document(const PlanSubject& subject, const UniformPlan& plan, const PlanReport& report);

// "sample:2, height:2 (ranks 0 to 3)"
std::string words_of(const Grid& grid);

}  // namespace convoy
