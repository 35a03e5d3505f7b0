// What a choice costs: seconds of kernels on a rank's part of an op and of its gradients, of the traffic that the choice asks for, and bytes of
// memory. Added up over ops this is an estimate of a step; the simulator has the last word.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "place/grid.h"
#include "plan/cost.h"
#include "plan/search_space.h"
#include "program/target.h"

namespace convoy {

// What an op does along each axis of a grid.
struct Choice {
    std::array<int16_t, kMostAxes> label{kWhole, kWhole, kWhole, kWhole};  // of the op's signature; kWhole: the axis does nothing to it
    Spread out;                                                            // where its result goes
    uint32_t label_key() const { return Spread{label}.key(); }
    bool operator==(const Choice&) const = default;
};

struct StepCost {
    double compute = 0;                // seconds of kernels
    double backward = 0;               // of them, in the backward pass, which gradient traffic can hide behind
    double latency = 0, transfer = 0;  // seconds of activation traffic
    double gradient = 0;               // seconds of gradient traffic
    double gradient_latency = 0;       // of them, before the first byte
    double memory = 0;                 // bytes
    StepCost& operator+=(const StepCost& other);
    double waits() const { return compute + latency + transfer; }
};

// How the parts add up to one number that a dynamic program can minimise.
struct SearchWeights {
    double gradient = 1;  // the part of gradient traffic that is not hidden
    double memory = 0;    // seconds that a byte is worth
    double of(const StepCost& c) const { return c.waits() + gradient * c.gradient + memory * c.memory; }
};

// The seconds of a step with gradient traffic beside the backward pass.
double step_seconds(const StepCost& cost);

// Kernels of local problems, remembered for all grids.
class LocalKernels {
  public:
    LocalKernels(const CostModel& cost, const Target& target, DType dtype) : cost_(cost), target_(target), dtype_(dtype) {}

    struct Local {
        double seconds = 0;
        int64_t halo_bytes = 0;  // that are read beyond what is owned
        int64_t result_bytes = 0;
    };
    // Batch norm over the whole batch, with statistics that travel.
    bool global_norm = true;
    // Each label cut into so many parts; a part in the middle counts.
    Local local(const LabelledOp& op, const std::vector<int>& parts);
    int64_t item_bytes(Element element) const { return size_of(target_.storage(element, dtype_)); }
    const CostModel& cost() const { return cost_; }

  private:
    Local measure(const LabelledOp& op, const std::vector<int>& parts) const;

    const CostModel& cost_;
    const Target& target_;
    DType dtype_;
    std::map<std::pair<NodeId, std::vector<int>>, Local> known_;
};

// Costs on one grid.
class GridCosts {
  public:
    GridCosts(const SearchSpace& space, const Grid& grid, LocalKernels& kernels);

    const Grid& grid() const { return grid_; }
    int axes() const { return std::min(kMostAxes, static_cast<int>(grid_.axes.size())); }
    // All choices that a free op has.
    std::vector<Choice> choices(size_t op) const;
    // What an op that is not free does when its inputs lie so (one for each of its reads).
    Choice follow(size_t op, const std::vector<Spread>& reads) const;
    // The op, its gradients and its parameters, without what its reads cost.
    const StepCost& cost(size_t op, const Choice& choice);
    // A read of what lies so, and the way of its gradient back.
    StepCost read(size_t op, const SearchOp::Read& read, const Spread& from, const Choice& choice);

    // A whole assignment: `chosen` has the choices of free ops (others are ignored). With `each`, the cost of every op is added there.
    StepCost evaluate(std::vector<Choice>& chosen, std::vector<StepCost>* each = nullptr);

    Spread needs(const LabelledOp& op, size_t operand, const Choice& choice) const;
    Spread makes(const DimRoles& roles, const Choice& choice) const;

  private:
    struct Group {
        GroupShape shape;
        bool between_nodes = false;
    };
    const Group& group(unsigned mask) const { return groups_[mask]; }
    std::vector<int> parts(const LabelledOp& op, const Choice& choice) const;
    Choice renamed(const LabelledOp& from, const Choice& choice, const LabelledOp& to) const;
    int splits(const Spread& spread) const;
    StepCost move(double bytes, const Spread& from, const Spread& to) const;
    StepCost collective(Collective::Kind kind, double bytes, unsigned mask) const;
    StepCost halo(const LabelledOp& op, const Choice& choice, int64_t bytes) const;
    StepCost compute(size_t op, const Choice& choice);
    void add_parameters(const SearchOp& op, const Choice& choice, StepCost& sum);
    double bytes_of(ValueId value) const;

    const SearchSpace& space_;
    Grid grid_;
    LocalKernels& kernels_;
    std::vector<Group> groups_;  // by mask of axes
    int ranks_here_ = 1;
    std::vector<std::unordered_map<uint64_t, StepCost>> known_;  // by op
};

}  // namespace convoy
