// Runs a program: owns its arena, binds its kernels once, and then executes step after step without allocating or looking anything up.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/trace.h"
#include "exec/state.h"
#include "kernels/backend.h"
#include "program/program.h"

namespace convoy {

class Executor {
  public:
    // Binds the program to the backend and to the state, which must have been bound to the program and must outlive the executor.
    Executor(Program program, Backend& backend, const State& state);

    const Program& program() const { return program_; }

    // Copies a tensor into an input. Bug when its shape or type is not the input's.
    void set_input(SlotId slot, const Tensor& tensor);
    // Copies a slot (an output) into `tensor`, which has its shape and type.
    void read(SlotId slot, Tensor& tensor) const;
    Tensor read(SlotId slot) const;
    // An empty tensor of a slot's shape and type, to fill and set.
    Tensor tensor_for(SlotId slot) const;

    // A scalar output that is looked at as soon as it is computed: when it is not finite the step ends there.
    void watch(SlotId scalar);

    // Runs one step. False when the watched scalar was not finite; nothing after it was executed then.
    bool run(const StepContext& context);
    // The same, with the time of every instruction.
    std::vector<TraceEvent> run_traced(const StepContext& context);

    // Runs the step again up to the watched scalar, looking at every result, and describes where a number first was not finite: a state, an input
    // or the result of an instruction. Nothing when all are finite.
    std::optional<std::string> find_non_finite(const StepContext& context);

    // Memory held for the arena, as allocated.
    int64_t arena_bytes() const { return arena_->bytes(); }

  private:
    Operand operand(SlotId slot) const;
    std::unique_ptr<Kernel> prepare(const Instruction& instruction);
    bool finite(SlotId slot) const;

    Program program_;
    Backend& backend_;
    const State& state_;
    std::unique_ptr<Memory> arena_;
    std::vector<std::unique_ptr<Kernel>> kernels_;
    SlotId watched_ = kNone;
    size_t watched_after_ = 0;  // the instruction that computes it
    Tensor watched_value_;
};

}  // namespace convoy
