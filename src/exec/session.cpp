#include "exec/session.h"

#include "base/error.h"
#include "kernels/device_memory.h"

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
                            .reuse_memory = options_.reuse_memory});
}

// A device that is too small says by how much before anything is put there.
void Session::require_room(const Program& program) const {
    const auto* const device = dynamic_cast<const HasDeviceMemory*>(backend_.get());
    if (!device) return;
    int64_t states = 0;
    for (const StateBinding& binding : program.states)
        if (!state_.contains(binding.spec.name)) states += binding.bytes;
    const DeviceMemoryUse use = device->memory_use();
    const int64_t available = use.total - use.in_use, needed = states + program.memory.arena_bytes;
    const auto gb = [](int64_t bytes) { return static_cast<double>(bytes) / 1e9; };
    require(needed <= available,
            "the GPU has {:.2f} GB free, but {:.2f} GB are needed, {:.2f} GB for a step and {:.2f} GB for parameters and what belongs to "
            "them: {:.2f} GB "
            "too little. A smaller batch or more micro-batches need less",
            gb(available), gb(needed), gb(program.memory.arena_bytes), gb(states), gb(needed - available));
}

std::unique_ptr<Executor> Session::load(const Graph& graph) {
    Program program = compile(graph);
    require_room(program);
    if (!first_) first_ = std::make_unique<Program>(program);
    state_.bind(program, options_.seed);
    return std::make_unique<Executor>(std::move(program), *backend_, state_, options_.link);
}

}  // namespace convoy
