// The graph with places: every op on a grid, every value in the pieces in which the ranks hold it, and every change of placement as a node of its own.
// The same on all ranks; lowering takes one rank's view of it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/graph.h"
#include "place/distribution.h"
#include "program/plan.h"

namespace convoy {

// One form of a value: as it was made, or after a change of placement.
struct PlacedValue {
    ValueId value = kNone;
    Distribution distribution;    // who owns what
    std::vector<Box> boxes;       // by place in the grid: what each rank holds, with what it needs of its neighbours
    std::vector<int64_t> counts;  // of statistics: the elements behind each rank's part
};

// A change of placement.
struct Move {
    enum class Kind : uint8_t { Slice, AllReduce, ReduceScatter, AllGather, MergeStatistics, Exchange };
    Kind kind = Kind::Slice;
    std::vector<int> axes;  // of the grid, along which a collective runs
};
std::string_view name_of(Move::Kind kind);

struct PlacedNode {
    NodeId node = kNone;               // kNone: a move
    Move move;                         // of one input to one output
    std::vector<int> inputs, outputs;  // indices into PlacedGraph::values
    std::string layer;                 // that reads the result
    Phase phase = Phase::Forward;
    int micro_batch = 0;
    bool global_norm = true;
};

struct PlacedGraph {
    std::vector<PlacedValue> values;
    std::vector<PlacedNode> nodes;
    struct Named {
        std::string name;
        int value;
    };
    struct Stored {
        int state, value;
    };
    std::vector<Named> inputs, outputs;  // an input may be there in several forms
    std::vector<Stored> stores;
};

// Error when the plan asks for what an op cannot do; it says what would work.
// States that are already somewhere, because another program of the run has placed them, stay there.
using StatePlaces = std::map<std::string, Distribution>;
PlacedGraph place(const Graph& graph, const Plan& plan, const StatePlaces& states = {});

// One line per node for a person: what, and how its operands lie.
std::string listing(const PlacedGraph& placed, const Graph& graph, const Plan& plan);

// What of a value every rank of the grid holds under a distribution.
std::vector<Box> owned_boxes(const Distribution& distribution, const Grid& grid, const Shape& shape);

}  // namespace convoy
