#include "exec/session.h"

#include "base/error.h"

namespace convoy {

namespace {

// Ranks of one machine share out its GPUs.
SessionOptions with_device(SessionOptions options) {
    if (!options.link) return options;
    int gpus = 0;
    for (const BackendStatus& status : backend_statuses())
        if (status.name == options.backend) gpus = static_cast<int>(status.devices.size());
    require(gpus > 0 || options.link->device_transport() != DeviceTransport::Nccl,
            "NCCL carries traffic between GPUs, but the {} backend {} none", options.backend, options.backend == "cuda" ? "finds" : "has");
    if (gpus > 0) options.device = device_of(options.link->rank(), options.link->transport().nodes(), options.device, gpus);
    return options;
}

}  // namespace

Session::Session(const SessionOptions& options)
    : options_(with_device(options)),
      backend_(make_backend(options_.backend, {.threads = options_.threads, .device = options_.device})),
      state_(*backend_, options.link) {}

Program Session::compile(const Graph& graph) const {
    const Rank rank = options_.link ? options_.link->rank() : options_.plan.grids[0].ranks[0];
    return convoy::compile(graph, options_.plan, backend_->target(),
                           {.dtype = options_.dtype,
                            .rank = rank,
                            .share_state_with = first_.get(),
                            .limits = options_.limits,
                            .costs = options_.costs.get(),
                            .reuse_memory = options_.reuse_memory,
                            .carry = options_.carry});
}

std::unique_ptr<Executor> Session::load(const Graph& graph) {
    Program program = compile(graph);
    if (!first_) first_ = std::make_unique<Program>(program);
    state_.bind(program, options_.seed);
    return std::make_unique<Executor>(std::move(program), *backend_, state_, options_.link);
}

}  // namespace convoy
