// What random plans have done to ops, against what they could do, for tests.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "program/placed_graph.h"

namespace convoy {

class Coverage {
  public:
    void add(const Graph& graph, const Plan& plan);

    // Ops and kinds of moves with how often which of their labels was split; then what else occurred.
    std::string table() const;

    // "max_index", "conv: group": of all there are, what has not occurred.
    std::vector<std::string> missing_ops() const;
    std::vector<std::string> missing_splits() const;  // labels that an axis may split, as the signatures of the ops that occurred say
    std::vector<std::string> missing_moves() const;
    std::vector<std::string> missing_features() const;

    // How often an axis split this label of the op, or "whole".
    int count(const std::string& op, const std::string& label) const;
    // Pairs of an op and a label that could occur.
    int possible_splits() const;

  private:
    void look_at_op(const Graph& graph, const PlacedGraph& placed, const PlacedNode& node);
    void look_at_cuts(const PlacedGraph& placed);
    void look_at_states(const Graph& graph, const PlacedGraph& placed);

    std::map<std::string, std::map<std::string, int>> ops_;  // op -> label -> in how many nodes
    std::map<std::string, std::set<std::string>> labels_;    // op -> labels of its signatures
    std::map<std::string, int> moves_, features_;            // in how many moves; in how many cases
};

}  // namespace convoy
