// From one placement of a value to another: which moves, one after the other.
#pragma once

#include <vector>

#include "program/placed_graph.h"

namespace convoy {

// What a move takes a value to.
struct Step {
    Move move;
    Distribution distribution;
    Boxes boxes;
};

struct MoveRequest {
    const PlacedValue& from;
    const Distribution& to;  // its partial axes stay as they are
    const Boxes& boxes;      // what each rank of to's grid is to hold
    const Shape& shape;
    bool statistics = false;  // reduced by merging
};

// No step when the value is already there.
std::vector<Step> moves(const MoveRequest& request, const std::vector<Grid>& grids);

}  // namespace convoy
