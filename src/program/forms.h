// The forms of every value while a graph is being placed: as it was made, gathered, with a halo. Each is made once, by moves, and shared by all that
// read it.
#pragma once

#include <string>
#include <vector>

#include "program/placed_graph.h"

namespace convoy {

// Neither made by a node nor a state: an input of the graph, which may lie in any form without a move.
inline bool is_given(const Graph& graph, ValueId v) { return graph.value(v).producer == kNone && graph.value(v).state == kNone; }
inline bool is_state(const Graph& graph, ValueId v) { return graph.value(v).state != kNone; }

// What it makes is merged, not summed.
inline bool makes_statistics(const Op& op) { return std::holds_alternative<BatchStatsOp>(op) || std::holds_alternative<CellStatsOp>(op); }

class Forms {
  public:
    // Forms and moves are added to `result`.
    Forms(const Graph& graph, const Plan& plan, PlacedGraph& result);

    // For whom a move is made.
    struct Reader {
        std::string layer;
        Phase phase;
        int micro_batch;
    };

    // Numbers are indices into PlacedGraph::values.
    const PlacedValue& at(int form) const { return result_.values[static_cast<size_t>(form)]; }
    const std::vector<int>& of(ValueId v) const { return forms_[static_cast<size_t>(v)]; }
    bool placed(ValueId v) const { return !of(v).empty(); }
    // The first form of a value: as it was made, or as the state lies. Bug when it has none.
    int home(ValueId v) const;
    const Distribution& lies(ValueId v) const { return at(home(v)).distribution; }
    bool of_statistics(ValueId v) const;

    int add(PlacedValue value);
    // The form is the value's home from now on; a home that was a sum not yet reduced is forgotten.
    void settle(ValueId v, int form);

    // A form of the value in which every rank holds these boxes; made by moves when there is none.
    int fetch(ValueId v, const Distribution& d, const Boxes& boxes, const Reader& reader);
    // A form without open sums.
    int complete(ValueId v);

  private:
    int source(ValueId v, const Distribution& d, const Boxes& boxes) const;
    bool holds_its_own(int form) const;
    const Grid& grid(int id) const { return plan_.grids[static_cast<size_t>(id)]; }

    const Graph& graph_;
    const Plan& plan_;
    PlacedGraph& result_;
    std::vector<std::vector<int>> forms_;  // of each value; the first is its home
};

}  // namespace convoy
