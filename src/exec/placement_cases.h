// Random graphs and random plans for them, by number, for tests.
#pragma once

#include "model/graph.h"
#include "program/plan.h"

namespace convoy {

struct PlacementCase {
    Graph graph;  // of a training step, or of an evaluation
    Plan plan;
    int64_t classes = 0;
};

// The same number gives the same case; one after the other they go through all kinds of layers. Without `lamb` another rule takes its place.
PlacementCase placement_case(int number, bool lamb = true);

}  // namespace convoy
