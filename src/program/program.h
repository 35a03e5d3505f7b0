// A program: what one rank does in one step, as a flat list of instructions over planned buffers. Plain values; executors and the simulator run
// the same list.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "base/json_fwd.h"
#include "model/graph.h"
#include "place/distribution.h"
#include "program/problem.h"
#include "tensor/layout.h"

namespace convoy {

// Instructions of one queue run in order; queues wait for each other only where an instruction says so. A small halo on Activation never waits
// behind a large bucket on Gradient, nor gradients that the next step needs first behind those that it needs late.
enum class Queue : uint8_t { Compute, Activation, Gradient, Late, Host };
inline constexpr size_t kQueues = 5;
std::string_view name_of(Queue queue);
// Gradients of parameters, and what their updates exchange.
inline bool is_gradient_queue(Queue queue) { return queue == Queue::Gradient || queue == Queue::Late; }

using SlotId = int32_t;

// A tensor of the program: a piece of the arena, or a state.
struct Slot {
    std::string name;
    TensorDesc desc;
    Layout layout;
    int64_t bytes = 0;
    int64_t offset = 0;     // in the arena
    int state = kNone;      // index into Program::states; the offset is then unused
    ValueId value = kNone;  // of the graph, of which this is (a part of) one form; kNone for wires
    bool partial = false;   // a sum not yet reduced over ranks
};

struct Compute {
    Problem problem;
    std::string algorithm;
    int64_t workspace_offset = 0, workspace_bytes = 0;
};
struct Copy {};  // one input, one output of the same shape; layout and floating type may differ
// Every rank of the group runs the same one. A wire holds the pieces of all ranks, in the order of the group.
struct Collective {
    enum class Kind : uint8_t { AllReduce, ReduceScatter, AllGather };  // in place; wire -> own piece; own piece -> wire
    struct Member {
        std::string layer;
        int64_t sent = 0;
    };
    Kind kind = Kind::AllReduce;
    std::vector<Rank> group;
    std::vector<int64_t> counts;  // elements of each rank's piece; AllReduce has none
    std::vector<Member> members;  // of an AllReduce of several tensors, whose results lie one after the other
};
// Messages to and from other ranks at once: the pieces of the wire that is sent, and of the one that is received, in order.
struct Exchange {
    struct Peer {
        Rank rank = 0;
        int64_t elements = 0;
    };
    std::vector<Peer> sends, receives;
};
using Action = std::variant<Compute, Copy, Collective, Exchange>;
inline bool is_traffic(const Action& action) {
    return std::holds_alternative<Collective>(action) || std::holds_alternative<Exchange>(action);
}

struct Instruction {
    Action action;
    std::vector<SlotId> inputs, outputs;
    Queue queue = Queue::Compute;
    std::vector<int> waits;  // earlier instructions, on other queues, that must have finished
    std::string layer;
    Phase phase = Phase::Forward;
    int micro_batch = 0;
    DType dtype = DType::f32;
    double work = 0;    // operations
    int64_t bytes = 0;  // that must move: every operand once
    int64_t sent = 0;   // bytes that this rank sends, with an algorithm that sends no more than it must
    int64_t order = 0;  // of traffic: by which ranks know which of theirs belong together
    // Carried over, unless kNone: it runs in the next step, before the instruction of this number at the latest, and waits for what its own step began. Traffic begins in
    // its own step and is over by then.
    int due = kNone;
};
// "conv 3x3 pad 1"
std::string text_of(const Instruction& instruction);

// A state that the program binds to.
struct StateBinding {
    StateSpec spec;
    Distribution distribution;
    TensorDesc desc;
    Layout layout;
    int64_t bytes = 0;
    int order = 0;  // among all states, the same on all ranks
};

struct Binding {
    std::string name;
    SlotId slot;
};

struct MemoryPlan {
    int64_t arena_bytes = 0;     // everything that lives within a step: inputs, activations, gradients, workspaces
    int64_t state_bytes = 0;     // parameters, optimizer state, running statistics
    int64_t unshared_bytes = 0;  // the arena if every tensor had memory of its own (workspaces aside)
};

struct Program {
    Rank rank = 0;
    std::vector<Grid> grids;
    std::string target;
    DType dtype = DType::f32;
    std::vector<Slot> slots;
    std::vector<Instruction> instructions;
    std::vector<StateBinding> states;     // that this rank holds (a part of)
    std::vector<StateBinding> elsewhere;  // that only others hold; without a part here
    std::vector<Binding> inputs, outputs;
    MemoryPlan memory;

    const Slot& slot(SlotId id) const { return slots[static_cast<size_t>(id)]; }
    // The slot of an input or output by name; Bug when there is none.
    SlotId input(std::string_view name) const;
    SlotId output(std::string_view name) const;
};

// The computations that are carried into the next step, in the order in which they run there.
std::vector<int> carried_computations(const Program& program);

// Work and bytes of the whole step.
struct Totals {
    double work = 0;
    int64_t bytes = 0;
    int64_t sent = 0;
};
Totals totals(const Program& program);

// One line per instruction for a person: what, shapes, bytes, memory.
std::string listing(const Program& program);
Json to_json(const Program& program);

}  // namespace convoy
