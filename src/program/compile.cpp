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

Compiler::Compiler(const Graph& graph, const Plan& plan, const Target& target, const CompileOptions& options)
    : graph_(graph),
      plan_(plan),
      target_(target, options.limits),
      options_(options),
      placed_(place(graph, plan, places_of(options.share_state_with, plan))),
      carries_(options.carry && target.on_host()),
      late_(carries_ ? late_parameters(graph) : std::vector<bool>(graph.values().size())) {}

Program Compiler::compile(Rank rank, const Program* share) const {
    LocalGraph local = lower({graph_, placed_, plan_, target_, options_.dtype, late_}, rank);
    fuse(local, target_);
    bucket(graph_, local);
    schedule(local);
    const EstimatedCosts estimated(target_);
    choose(local, target_,
           {.costs = options_.costs ? options_.costs : &estimated, .share_state_with = share, .plan = &plan_, .rank = rank});
    if (carries_) carry(local);
    Program program = plan_memory(local, options_.reuse_memory);
    program.rank = rank;
    program.grids = plan_.grids;
    program.target = target_.name();
    program.dtype = options_.dtype;
    return program;
}

Program Compiler::program(Rank rank) {
    if (options_.share_state_with) return compile(rank, options_.share_state_with);
    // States lie alike on all ranks, so that gradients can be summed as they lie: the first rank decides.
    const Rank first = plan_.grids[0].ranks[0];
    if (!first_) first_ = compile(first, nullptr);
    return rank == first ? *first_ : compile(rank, &*first_);
}

Program compile(const Graph& graph, const Plan& plan, const Target& target, const CompileOptions& options) {
    return Compiler(graph, plan, target, options).program(options.rank);
}

}  // namespace convoy
