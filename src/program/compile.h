// The compiler: graph and plan to a program for one rank.
//
//     lower      drop what nothing reads, place every value, make each op a local problem
//     fuse       several problems into one where the target can do them in one pass
//     schedule   an order; updates move up to where their gradient is ready
//     choose     a candidate of the target for every problem, layouts, copies between them
//     carry      updates that wait for gradient traffic go on into the next step
//     plan       memory: lifetimes, in-place, views, offsets
#pragma once

#include <optional>

#include "program/costs.h"
#include "program/limits.h"
#include "program/placed_graph.h"
#include "program/plan.h"
#include "program/program.h"
#include "program/target.h"

namespace convoy {

struct CompileOptions {
    DType dtype = DType::f32;
    Rank rank = 0;
    // Places and layouts that states already have, because another program of this rank on the same state was compiled first. Empty: the compiler
    // chooses.
    const Program* share_state_with = nullptr;
    Limits limits = {};
    const Costs* costs = nullptr;  // what candidates are weighed by; none: the target's estimates
    bool reuse_memory = true;      // off: every tensor has its own memory (for debugging and for comparing)
    bool carry = true;             // where the target's memory is the host's: gradient traffic goes on beside the next step's forward pass
};

// Programs of several ranks of one plan: what does not depend on the rank is done once.
class Compiler {
  public:
    // The graph, the plan and the target must outlive it. Error when the plan or the dtype cannot be done. The options' rank is not looked at.
    Compiler(const Graph& graph, const Plan& plan, const Target& target, const CompileOptions& options);

    const PlacedGraph& placed() const { return placed_; }
    Program program(Rank rank);

  private:
    Program compile(Rank rank, const Program* share) const;

    const Graph& graph_;
    const Plan& plan_;
    LimitedTarget target_;
    CompileOptions options_;
    PlacedGraph placed_;
    bool carries_;
    std::vector<bool> late_;        // of each value: a parameter whose gradient may come late
    std::optional<Program> first_;  // that of the first rank, which decides how states lie
};

// That of the options' rank.
Program compile(const Graph& graph, const Plan& plan, const Target& target, const CompileOptions& options);

}  // namespace convoy
