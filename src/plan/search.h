// The search for a plan: which way of sharing a training step between a number of ranks takes least time on a machine, within the memory of its
// devices. For every shape of a grid a dynamic program finds the best choice for each layer (search_dp.h); the best few complete plans, and the ways
// that everybody knows (by samples, by space, by channels, ...), are compiled and simulated, and the fastest that fits is taken. So the answer is
// never predicted to be slower than any of those.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/machine.h"
#include "plan/search_cost.h"
#include "program/plan.h"
#include "program/target.h"

namespace convoy {

enum class Objective : uint8_t { Time, Samples, Cost, Energy };
std::string_view name_of(Objective objective);

struct SearchOptions {
    int ranks = 1;
    int64_t memory = 0;  // bytes that a rank may use; 0: what the machine's smallest device has
    DType dtype = DType::f32;
    int threads = 0;  // of a rank, where devices join
    Objective objective = Objective::Time;
    bool global_norm =
        true;           // batch norm over the whole batch, or over each rank's own part, which needs no traffic but computes something else
    int finalists = 6;  // plans of the search's own that are simulated
    bool explain = true;
};

// A complete plan and what became of it.
struct ScoredPlan {
    std::string name;  // "data", "found on sample:2,height:2"
    Plan plan;
    double estimate = 0;                              // seconds of a step: the sum that the search works with
    bool simulated = false;                           // what follows is known
    double seconds = 0;                               // of a step, by the simulator
    double compute_seconds = 0, waiting_seconds = 0;  // of the rank that is last
    double joules = 0;                                // 0: a power is not known
    int64_t memory = 0;                               // bytes of the rank that uses most
    int64_t activation_sent = 0, gradient_sent = 0;   // bytes of a rank
    std::string failure;                              // why it cannot be done; empty: it can
    bool fits = false;                                // can be done, within the memory
};

// Why a layer is split as it is.
struct LayerChoice {
    std::string layer;
    std::string choice;     // "samples/2 height/2"
    std::string next;       // the best other choice for this layer alone; empty: there is none
    double next_extra = 0;  // seconds that it would add to the step
    std::string limit;      // what takes most of its time: compute, bandwidth, latency, gradients; memory: a faster choice would not fit
    StepCost cost;
    double data_seconds = 0;  // of this layer in pure data parallelism
};

// The name of a found plan in which every rank computes everything: where the network is so slow that nothing gains from being split.
constexpr std::string_view kUnsplit = "unsplit";

struct SearchResult {
    ScoredPlan best;
    std::optional<ScoredPlan> data;   // pure data parallelism; nothing where there is only one rank
    std::vector<ScoredPlan> plans;    // all that were looked at closely, the fastest that fits first
    std::vector<LayerChoice> layers;  // of the best plan
    int grids = 0;                    // shapes of grids that were searched
    bool exact = true;                // on each of them nothing was left out
    int64_t memory_limit = 0;
};

// `graph` is a training graph. The result's best plan may not fit (`best.fits`): then nothing that was found does, and it is the one that needs least.
// Error when the machine has too few seats, or when no way uses this number of ranks.
SearchResult search_plan(const Graph& graph, const Machine& machine, const Target& target, const SearchOptions& options);

// What a step costs in the objective's own unit: seconds, seconds per sample, price, joules.
double score(const ScoredPlan& plan, Objective objective, const Machine& machine, int ranks, int64_t batch);

// The plan of an assignment on a grid; and the choices that a plan on a single grid makes, where it is one that the search could make.
Plan plan_of(const SearchSpace& space, const Grid& grid, const std::vector<Choice>& chosen);
std::optional<std::vector<Choice>> choices_of(const SearchSpace& space, const Plan& plan);

// The shapes of grids that are searched for a number of ranks, simple ones first.
std::vector<Grid> search_grids(int ranks);

// What a choice is called.
std::string words_of(const SearchOp& op, const Choice& choice, const Grid& grid);

}  // namespace convoy
