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

// On a device: what there is, and what the program needs. Libraries and the next batch, while the step has its own, need some too.
std::optional<Session::Room> Session::room_for(const Program& program) const {
    const auto* const device = dynamic_cast<const HasDeviceMemory*>(backend_.get());
    if (!device) return std::nullopt;
    const DeviceMemoryUse use = device->memory_use();
    Room room{
        .available = use.total - use.in_use, .step = shares_memory(program) ? 0 : program.memory.arena_bytes, .beside = use.libraries};
    for (const StateBinding& binding : program.states)
        if (!state_.contains(binding.spec.name)) room.states += binding.bytes;
    for (const auto& [name, slot] : program.inputs) room.beside += program.slot(slot).bytes;
    return room;
}

bool Session::has_room_for(const Graph& graph) const {
    const auto room = room_for(compile(graph));
    return !room || room->needed() <= room->available;
}

// A device that is too small says by how much before anything is put there.
void Session::require_room(const Program& program) const {
    const auto room = room_for(program);
    if (!room) return;
    const auto gb = [](int64_t bytes) { return static_cast<double>(bytes) / 1e9; };
    require(room->needed() <= room->available,
            "the GPU has {:.2f} GB free, but {:.2f} GB are needed, {:.2f} GB for a step, {:.2f} GB for parameters and what belongs to "
            "them, and {:.2f} GB for the next "
            "batch and for libraries: {:.2f} GB too little. A smaller batch or more micro-batches need less",
            gb(room->available), gb(room->needed()), gb(room->step), gb(room->states), gb(room->beside),
            gb(room->needed() - room->available));
}

std::unique_ptr<Executor> Session::load(const Graph& graph) {
    Program program = compile(graph);
    require_room(program);
    if (!first_) first_ = std::make_unique<Program>(program);
    state_.bind(program, options_.seed);
    auto memory = memory_for(program);
    return std::make_unique<Executor>(std::move(program), Site{*backend_, state_, options_.link, std::move(memory)});
}

std::shared_ptr<Memory> Session::memory_for(const Program& program) {
    if (!shares_memory(program)) {
        memory_ = nullptr;  // unless a program runs there
        memory_ = backend_->allocate(program.memory.arena_bytes);
        held_.push_back(memory_);
    }
    return memory_;
}

int64_t Session::step_bytes() const {
    int64_t bytes = 0;
    for (const auto& held : held_)
        if (const auto memory = held.lock()) bytes += memory->bytes();
    return bytes;
}

}  // namespace convoy
