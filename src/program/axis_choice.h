// What the axes of a grid do to an op: each splits one of its labels, or does nothing. Convolutions and fully connected layers do what the plan says, and
// their gradients split the same label; everything else takes what costs least traffic, which means that it follows its inputs.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "program/forms.h"
#include "program/signature.h"

namespace convoy {

// What an axis does, beside splitting a label (which is its number).
constexpr int kReplicated = -1;   // nothing
constexpr int kPassPartial = -2;  // sums not yet reduced pass through

// One node while it is being placed.
struct PlacingOp {
    const Node& node;
    const LayerPlan& entry;
    int grid_id;
    const Grid& grid;
    std::vector<ValueType> in_types, out_types;
    Signature signature;
    std::vector<int> choice;  // what each axis does

    // Batch norm of each rank's own part takes statistics, and the sums behind dx, as they are.
    bool takes_own_part(size_t input) const;
};

// How an operand lies along an axis that does this.
AxisPlacement input_as(const DimRoles& roles, int choice);
AxisPlacement output_as(const DimRoles& roles, int choice);

AxisPlacement placement_on(const Distribution& distribution, int axis);

class AxisChoice {
  public:
    AxisChoice(const Graph& graph, const Forms& forms);

    // Error when the plan asks for what the op cannot do; it says what would work.
    int choose(const PlacingOp& op, int axis) const;
    // Remembers what was chosen for an op with weights, for its gradients.
    void remember(const PlacingOp& op);

    // Where a result is to lie along an axis: what the plan says of the layer's output; a gradient as its value; a state's next version as the state.
    std::optional<AxisPlacement> wanted(const PlacingOp& op, size_t output, int axis) const;

  private:
    int choice_of_plan(const PlacingOp& op, int axis) const;
    int cheapest(const PlacingOp& op, int axis) const;
    double cost(const PlacingOp& op, int axis, int choice) const;
    double input_cost(const PlacingOp& op, size_t input, int axis, int choice) const;
    double output_cost(const PlacingOp& op, size_t output, int axis, int choice) const;
    std::optional<AxisPlacement> home_on(const PlacingOp& op, ValueId v, int axis) const;
    double bytes(ValueId v) const;

    const Graph& graph_;
    const Forms& forms_;
    std::map<ValueId, ValueId> stored_as_;                                     // next version -> state
    std::map<std::pair<std::string, int>, std::vector<std::string>> forward_;  // layer, micro-batch -> the label that each axis splits
};

}  // namespace convoy
