// What a backend offers, as a pure description. The compiler, the tuner and the simulator read only this.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "program/problem.h"
#include "tensor/layout.h"

namespace convoy {

// How a candidate's sums come about. Exact: every result is a plain sum of the products that define it. Fast: through a transform (Winograd, Fourier)
// that saves multiplications, or of split numbers (AMX), which costs digits.
enum class Numerics : uint8_t { Exact, Fast };

// One way to compute a problem.
struct Candidate {
    std::string algorithm;
    std::vector<Layout> inputs, outputs;        // what it wants and gives; one entry per operand
    std::vector<DType> input_types;             // floating types it wants its inputs in; empty: as they are stored
    int64_t workspace_bytes = 0;                // scratch memory during the instruction
    std::vector<std::pair<int, int>> in_place;  // {output, input}: may lie in the same memory, when the input is not read again
    double seconds = 0;                         // a rough estimate, good enough to weigh it against copies between layouts
    Numerics numerics = Numerics::Exact;
    double operations = 0;  // multiplications and additions that this way takes; may be more or fewer than the problem's own
};

// An algorithm that a target has and does not offer for a problem, and why.
struct Refusal {
    std::string algorithm, reason;
};

class Target {
  public:
    virtual ~Target() = default;
    virtual std::string name() const = 0;
    // How elements are stored when computing in `compute`. Error when the target does not compute in that type.
    virtual DType storage(Element element, DType compute) const = 0;
    // All ways to compute the problem, the likely best first. Empty: not as one instruction (a single op is never refused).
    virtual std::vector<Candidate> candidates(const Problem& problem) const = 0;
    // The algorithms made for problems like this one that do not take it. For people and tests; the compiler never asks.
    virtual std::vector<Refusal> refusals(const Problem&) const { return {}; }
    // How fast a copy between layouts is, counting what is read and what is written.
    virtual double copy_bytes_per_second() const { return 8e9; }
    // Whether its memory is the host's. Traffic then has threads of its own, and updates that wait for it are carried into the next step.
    virtual bool on_host() const { return true; }
};

}  // namespace convoy
