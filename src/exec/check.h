// The teacher-forced check of a backend: every instruction of a program by itself, on the inputs that a float64 run of the reference had, against
// what that run computed. Rounding cannot build up from layer to layer, so each kernel is held to its own tolerance.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "exec/compare.h"
#include "exec/link.h"
#include "exec/turns.h"
#include "kernels/backend.h"
#include "program/program.h"
#include "tensor/tensor.h"

namespace convoy {

struct InstructionError {
    int instruction = 0;
    std::string text;  // layer and what was computed
    double error = 0;  // ||result - truth|| / max(||truth||, for a parameter's gradient 1e-3 of the norm of the whole gradient)
};

struct CheckOptions {
    Link* link = nullptr;    // to the other ranks of a program with traffic; all of them check together
    Turns* turns = nullptr;  // at instructions that need much memory
    // Is shown every result of the float64 run, in order, and may keep it.
    std::function<void(SlotId, const std::shared_ptr<const Tensor>&)> on_truth = nullptr;
};

// This rank's part of an input or state, by name, in f64 or i32.
using Feed = std::function<std::shared_ptr<const Tensor>(const std::string& name, const TensorDesc& part)>;
// Parts of whole tensors, which must outlive it.
Feed parts_of(const std::map<std::string, Tensor>& wholes);

// Runs the program so, one instruction after the other, in fresh memory with outputs poisoned first. Traffic carries the float64 numbers, and once more its own type to be checked. The result has one entry per
// instruction, in order; a number that is not finite gives an error that is not finite.
std::vector<InstructionError> check_instructions(const Program& program, Backend& backend, const Feed& feed, const StepContext& context,
                                                 const CheckOptions& options = {});

// What such a check takes: memory for the float64 numbers that are still to be read or (`kept`) compared, at the moment when they are most, and what the
// largest instruction needs besides.
struct CheckMemory {
    int64_t lasting = 0, passing = 0;
};
CheckMemory memory_of_check(const Program& program, const std::function<bool(const Slot&)>& kept);

// The largest of them.
InstructionError worst_of(const std::vector<InstructionError>& errors);

}  // namespace convoy
