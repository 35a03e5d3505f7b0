#include "exec/executor.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/error.h"

namespace convoy {

Executor::Executor(Program program, Backend& backend, const State& state)
    : program_(std::move(program)), backend_(backend), state_(state), arena_(backend.allocate(program_.memory.arena_bytes)) {
    for (const Instruction& instruction : program_.instructions) kernels_.push_back(prepare(instruction));
}

Operand Executor::operand(SlotId id) const {
    const Slot& slot = program_.slot(id);
    if (slot.state == kNone) return {arena_->data() + slot.offset, slot.desc, slot.layout};
    Operand operand = state_.operand(program_.states[static_cast<size_t>(slot.state)].spec.name);
    operand.desc = slot.desc;  // a view of the state may have another shape
    return operand;
}

std::unique_ptr<Kernel> Executor::prepare(const Instruction& instruction) {
    KernelRequest request;
    for (const SlotId id : instruction.inputs) request.inputs.push_back(operand(id));
    for (const SlotId id : instruction.outputs) request.outputs.push_back(operand(id));
    if (std::holds_alternative<Copy>(instruction.action)) return backend_.prepare_copy(request.inputs[0], request.outputs[0]);
    const auto* compute = std::get_if<Compute>(&instruction.action);
    CONVOY_CHECK(compute, "{} of \"{}\" is no instruction for one rank", text_of(instruction), instruction.layer);
    request.problem = compute->problem;
    request.algorithm = compute->algorithm;
    if (compute->workspace_bytes > 0) request.workspace = arena_->data() + compute->workspace_offset;
    return backend_.prepare(request);
}

void Executor::set_input(SlotId slot, const Tensor& tensor) {
    const TensorDesc& desc = program_.slot(slot).desc;
    CONVOY_CHECK(tensor.shape() == desc.shape && tensor.dtype() == desc.dtype, "input \"{}\" is {} {}, got {} {}", program_.slot(slot).name,
                 to_string(desc.shape), name_of(desc.dtype), to_string(tensor.shape()), name_of(tensor.dtype()));
    backend_.upload(tensor, operand(slot));
}

void Executor::read(SlotId slot, Tensor& tensor) const { backend_.download(operand(slot), tensor); }

Tensor Executor::read(SlotId slot) const {
    Tensor tensor = tensor_for(slot);
    read(slot, tensor);
    return tensor;
}

Tensor Executor::tensor_for(SlotId slot) const { return Tensor(program_.slot(slot).desc.shape, program_.slot(slot).desc.dtype); }

void Executor::watch(SlotId scalar) {
    watched_ = scalar;
    watched_value_ = tensor_for(scalar);
    for (size_t i = 0; i < program_.instructions.size(); ++i) {
        const auto& outputs = program_.instructions[i].outputs;
        if (std::find(outputs.begin(), outputs.end(), scalar) != outputs.end()) watched_after_ = i;
    }
}

bool Executor::run(const StepContext& context) {
    for (size_t i = 0; i < kernels_.size(); ++i) {
        kernels_[i]->run(context);
        if (watched_ != kNone && i == watched_after_) {
            read(watched_, watched_value_);
            if (!std::isfinite(element(watched_value_, 0))) return false;
        }
    }
    backend_.synchronize();
    return true;
}

std::vector<TraceEvent> Executor::run_traced(const StepContext& context) {
    using Clock = std::chrono::steady_clock;
    const auto microseconds = [](Clock::duration d) { return std::chrono::duration<double, std::micro>(d).count(); };
    std::vector<TraceEvent> events;
    const auto start = Clock::now();
    for (size_t i = 0; i < kernels_.size(); ++i) {
        const Instruction& in = program_.instructions[i];
        const auto begin = Clock::now();
        kernels_[i]->run(context);
        backend_.synchronize();
        events.push_back({.name = in.layer + ": " + text_of(in),
                          .category = std::string(name_of(in.phase)),
                          .rank = program_.rank,
                          .queue = static_cast<int>(in.queue),
                          .begin_us = microseconds(begin - start),
                          .duration_us = microseconds(Clock::now() - begin),
                          .flops = in.work,
                          .bytes = static_cast<double>(in.bytes)});
    }
    return events;
}

bool Executor::finite(SlotId slot) const {
    if (!is_floating(program_.slot(slot).desc.dtype)) return true;
    const Tensor tensor = read(slot);
    for (int64_t i = 0; i < tensor.numel(); ++i)
        if (!std::isfinite(element(tensor, i))) return false;
    return true;
}

std::optional<std::string> Executor::find_non_finite(const StepContext& context) {
    const size_t end = watched_ == kNone ? kernels_.size() : watched_after_ + 1;
    // States that the failed run has already written (running statistics) say nothing of what was before it.
    std::vector<bool> written(program_.states.size());
    for (size_t i = 0; i < end; ++i)
        for (const SlotId id : program_.instructions[i].outputs)
            if (const int state = program_.slot(id).state; state != kNone) written[static_cast<size_t>(state)] = true;
    for (const Slot& slot : program_.slots)
        if (slot.state != kNone && !written[static_cast<size_t>(slot.state)] && !finite(static_cast<SlotId>(&slot - program_.slots.data())))
            return fmt::format("\"{}\" was not finite before the step began", program_.states[static_cast<size_t>(slot.state)].spec.name);
    for (const auto& [name, slot] : program_.inputs)
        if (!finite(slot)) return fmt::format("the input \"{}\" holds a number that is not finite", name);
    for (size_t i = 0; i < end; ++i) {
        kernels_[i]->run(context);
        for (const SlotId slot : program_.instructions[i].outputs)
            if (!finite(slot))
                return fmt::format("layer \"{}\" ({}, {}) was the first whose result was not finite", program_.instructions[i].layer,
                                   text_of(program_.instructions[i]), name_of(program_.instructions[i].phase));
    }
    return std::nullopt;
}

}  // namespace convoy
