// The graph with places: every op on a grid, every value in the pieces in which the ranks hold it, and every change of placement as a node of its own.
// The same on all ranks; lowering takes one rank's view of it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/graph.h"
#include "place/distribution.h"
#include "program/plan.h"

namespace convoy {

// What each rank of a grid holds of a value, by place in the grid. Values share their lists, and what is the same for all is kept once: thousands of ranks
// must not take thousands of times the memory.
class Boxes {
  public:
    Boxes() = default;
    Boxes(std::vector<Box> list);  // NOLINT(google-explicit-constructor): it is a list of boxes
    // The same box for each of `count`.
    Boxes(const Box& box, size_t count) : list_(std::make_shared<const std::vector<Box>>(1, box)), size_(count) {}

    size_t size() const { return size_; }
    const Box& operator[](size_t i) const { return (*list_)[list_->size() == 1 ? 0 : i]; }
    // Whether all ranks hold the same.
    bool same() const { return size_ == 0 || list_->size() == 1; }
    std::vector<Box> list() const;
    bool operator==(const Boxes& other) const;

  private:
    std::shared_ptr<const std::vector<Box>> list_;  // one for each place, or one for all
    size_t size_ = 0;
};

// One form of a value: as it was made, or after a change of placement.
struct PlacedValue {
    ValueId value = kNone;
    Distribution distribution;    // who owns what
    Boxes boxes;                  // what each rank holds, with what it needs of its neighbours
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
Boxes owned_boxes(const Distribution& distribution, const Grid& grid, const Shape& shape);

}  // namespace convoy
