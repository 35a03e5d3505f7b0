#include "program/compile.h"

#include "base/error.h"
#include "program/local_graph.h"

namespace convoy {

namespace {

StatePlaces places_of(const Program* program, const Plan& plan) {
    StatePlaces places;
    if (!program) return places;
    CONVOY_CHECK(program->grids == plan.grids, "programs that share a state have different grids");
    for (const auto* list : {&program->states, &program->elsewhere})
        for (const StateBinding& state : *list) places.emplace(state.spec.name, state.distribution);
    return places;
}

}  // namespace

Program compile(const Graph& graph, const Plan& plan, const Target& target, const CompileOptions& options) {
    const PlacedGraph placed = place(graph, plan, places_of(options.share_state_with, plan));
    LocalGraph local = lower(graph, placed, plan, target, options.dtype, options.rank);
    fuse(local, target);
    bucket(graph, local);
    schedule(local);
    // States lie alike on all ranks, so that gradients can be summed as they lie: the first rank decides.
    const Rank first = plan.grids[0].ranks[0];
    Program agreed;
    const Program* share = options.share_state_with;
    if (!share && options.rank != first) {
        CompileOptions as_first = options;
        as_first.rank = first;
        agreed = compile(graph, plan, target, as_first);
        share = &agreed;
    }
    const EstimatedCosts estimated(target);
    choose(local, target, options.costs ? *options.costs : estimated, share);
    Program program = plan_memory(local, options.reuse_memory);
    program.rank = options.rank;
    program.grids = plan.grids;
    program.target = target.name();
    program.dtype = options.dtype;
    return program;
}

}  // namespace convoy
