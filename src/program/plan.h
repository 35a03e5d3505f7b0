// A plan: the grids of a run and, for layers by name or pattern, where their input, weights and output lie. Gradients take the dual placement
// (replicated <-> partial). A plain value that a person can edit: JSON in, JSON out.
#pragma once

#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "place/grid.h"

namespace convoy {

// What one axis of the grid does to one tensor.
struct AxisPlacement {
    enum class Kind : uint8_t { Replicate, Split, Partial };
    Kind kind = Kind::Replicate;
    int dim = 0;  // of Split
    bool operator==(const AxisPlacement&) const = default;
};

// One entry per axis of the layer's grid; empty: left to the compiler, which follows the layer's inputs.
using Placement = std::vector<AxisPlacement>;

struct LayerPlan {
    std::string layers = "*";  // a layer's name, or a pattern with *
    int grid = 0;
    Placement input, weight, output;
    bool global_norm = true;  // batch norm over the whole batch, or each rank's own part
    int state_axis = -1;      // optimizer state is cut along this axis of the grid; -1: it lies as its parameter does
    bool operator==(const LayerPlan&) const = default;
};

struct Plan {
    std::vector<Grid> grids;
    std::vector<LayerPlan> layers;  // the first that matches counts

    // Everything on one rank.
    static Plan single();
    bool operator==(const Plan&) const = default;
};

// Whether `name` matches `pattern`, in which * stands for any characters.
bool matches(const std::string& pattern, const std::string& name);

// The entry for a layer; Error names the layer when no entry matches.
const LayerPlan& layer_plan(const Plan& plan, const std::string& layer);

Json to_json(const Plan& plan);
// Error says what is missing or wrong.
Plan plan_from_json(const Json& json);

}  // namespace convoy
