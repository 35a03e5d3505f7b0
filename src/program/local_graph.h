// The compiler's own form between graph and program: local problems over local values, in execution order.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "program/costs.h"
#include "program/placed_graph.h"
#include "program/plan.h"
#include "program/program.h"
#include "program/target.h"

namespace convoy {

struct LocalValue {
    std::string name;
    TensorDesc desc;
    Element element = Element::Real;
    int state = kNone;    // index into LocalGraph::states
    bool input = false;   // given from outside
    bool output = false;  // read from outside after the step
    Layout layout;        // set when candidates are chosen
    ValueId value = kNone;
    bool partial = false;
};

struct LocalNode {
    Problem problem;
    std::vector<int> inputs, outputs;  // local values
    std::string layer;
    Phase phase = Phase::Forward;
    int micro_batch = 0;
    double work = 0;
    Candidate candidate;            // set when candidates are chosen
    bool copy = false;              // a copy between layouts or types; the problem is then empty
    bool apart = false;             // of a copy: in memory of its own, though it be alike
    bool carried = false;           // into the next step; of traffic: whoever waits for it is
    std::optional<Action> traffic;  // a collective or an exchange; the problem is then empty
    Queue queue = Queue::Compute;
    int64_t sent = 0;
    int64_t order = 0;      // of traffic: the same on all ranks, and consistent with what depends on what
    std::vector<int> like;  // of an all_reduce: for each operand the state in whose layout it runs, or kNone
    bool gathers = false;   // of an all_reduce: it may wait for others and go with them
};

// `value` becomes the next version of the state that entered as `state`.
struct LocalStore {
    int state, value;
};

struct LocalGraph {
    std::vector<LocalValue> values;
    std::vector<LocalNode> nodes;
    std::vector<StateBinding> states, elsewhere;
    std::vector<LocalStore> stores;
    std::vector<Binding> inputs, outputs;  // slot: local value
};

struct LowerOptions {
    const Graph& graph;
    const PlacedGraph& placed;
    const Plan& plan;
    const Target& target;
    DType dtype;
    const std::vector<bool>& late;  // by value of the graph: parameters whose gradients have the late queue
};
LocalGraph lower(const LowerOptions& options, Rank rank);
void fuse(LocalGraph& graph, const Target& target);
void bucket(const Graph& whole, LocalGraph& graph);
// Within so many nodes work is moved, to run while traffic travels that the pass waits for.
constexpr size_t kSoon = 8;
void schedule(LocalGraph& graph);

struct ChooseOptions {
    const Costs* costs = nullptr;
    const Program* share_state_with = nullptr;  // layouts that states already have
    const Plan* plan = nullptr;
    Rank rank = 0;
};
void choose(LocalGraph& graph, const Target& target, const ChooseOptions& options);
// By value: the parameters that the forward pass reads first when much of it is done, and whose updates need nothing but their own gradient.
std::vector<bool> late_parameters(const Graph& graph);
void carry(LocalGraph& graph);
Program plan_memory(const LocalGraph& graph, bool reuse);

}  // namespace convoy
