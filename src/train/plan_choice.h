// A plan as a user names it, before there is a graph to make it for: a word ("sample:2,height:2", "data"), or a plan of its own from a JSON file.
#pragma once

#include <optional>
#include <string>

#include "model/graph.h"
#include "program/plan_spec.h"

namespace convoy {

struct PlanChoice {
    std::string spec;  // unless the plan is fixed
    std::optional<Plan> fixed;
    int ranks = 1;
};

// `text` is a spec, "auto" (which a command has to replace by the plan that it finds), the path of a JSON file, JSON itself (which is how a configuration keeps a file's plan) or empty: one rank alone, and several
// by samples. `ranks` may be 0 where the plan says how many it needs; empty needs one then. Error says what is wrong with the text or the file, or
// that it is for another number of ranks.
PlanChoice plan_choice(const std::string& text, int ranks);

// The same choice as a text that plan_choice takes, whatever becomes of the file.
std::string text_of(const PlanChoice& choice);

// The plan for a model. `graph` is its training graph, which has all its layers. Programs for evaluation and for a last, smaller batch run under
// the same plan, so that parameters lie alike. Error when an entry of a fixed plan is for no layer of the graph.
UniformPlan plan_for(const PlanChoice& choice, const Graph& graph);

// Which layers could not follow along which axis and why, a line for each axis and reason; empty when all could.
std::string text_of(const std::vector<Unfollowed>& unfollowed);

}  // namespace convoy
