#include "exec/session.h"

namespace convoy {

Session::Session(const SessionOptions& options)
    : options_(options),
      backend_(make_backend(options.backend, {.threads = options.threads, .device = options.device})),
      state_(*backend_, options.link) {}

Program Session::compile(const Graph& graph) const {
    const Rank rank = options_.link ? options_.link->rank() : options_.plan.grids[0].ranks[0];
    return convoy::compile(graph, options_.plan, backend_->target(),
                           {.dtype = options_.dtype,
                            .rank = rank,
                            .share_state_with = first_.get(),
                            .limits = options_.limits,
                            .costs = options_.costs.get(),
                            .reuse_memory = options_.reuse_memory});
}

std::unique_ptr<Executor> Session::load(const Graph& graph) {
    Program program = compile(graph);
    if (!first_) first_ = std::make_unique<Program>(program);
    state_.bind(program, options_.seed);
    return std::make_unique<Executor>(std::move(program), *backend_, state_, options_.link);
}

}  // namespace convoy
