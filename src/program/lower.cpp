// Graph to local problems: what nothing reads is dropped, every value gets its place, every op becomes what this rank computes of it.
#include "base/error.h"
#include "model/cost.h"
#include "program/local_graph.h"

namespace convoy {

namespace {

// The nodes whose results reach an output or a store.
std::vector<bool> live_nodes(const Graph& graph) {
    std::vector<bool> live(graph.nodes().size(), false), wanted(graph.values().size(), false);
    for (const auto& output : graph.outputs()) wanted[static_cast<size_t>(output.value)] = true;
    for (const auto& store : graph.stores()) wanted[static_cast<size_t>(store.value)] = true;
    for (size_t n = graph.nodes().size(); n-- > 0;) {
        const Node& node = graph.nodes()[n];
        for (const ValueId v : node.outputs) live[n] = live[n] || wanted[static_cast<size_t>(v)];
        if (!live[n]) continue;
        for (const ValueId v : node.inputs) wanted[static_cast<size_t>(v)] = true;
    }
    return live;
}

class Lowering {
  public:
    Lowering(const Graph& graph, const Plan& plan, const Target& target, DType dtype, Rank rank)
        : graph_(graph), plan_(plan), target_(target), dtype_(dtype), rank_(rank), local_(graph.values().size(), kNone) {
        for (const Grid& grid : plan.grids)
            require(grid.size() == 1, "the plan has a grid of {} ranks ({}); this compiler places programs on one rank only", grid.size(),
                    to_string(grid));
    }

    LocalGraph run() {
        for (const auto& [name, value] : graph_.inputs()) result_.inputs.push_back({name, local(value)});
        const auto live = live_nodes(graph_);
        for (size_t n = 0; n < live.size(); ++n)
            if (live[n]) lower(graph_.nodes()[n]);
        for (const auto& [name, value] : graph_.outputs()) {
            result_.values[static_cast<size_t>(local(value))].output = true;
            result_.outputs.push_back({name, local(value)});
        }
        for (const auto& [state, value] : graph_.stores()) result_.stores.push_back({local(state), local(value)});
        return std::move(result_);
    }

  private:
    // Where a value lies: on one rank, all of it.
    Distribution distribution(const std::string& layer) const { return {.grid = layer_plan(plan_, layer).grid}; }

    TensorDesc place(const Value& value, const Distribution& d) const {
        const Box box = held_box(d, plan_.grids[static_cast<size_t>(d.grid)], value.type.shape, rank_);
        return {box.shape, target_.storage(value.type.element, dtype_), value.type.shape, box.origin};
    }

    int local(ValueId id) {
        int& known = local_[static_cast<size_t>(id)];
        if (known != kNone) return known;
        const Value& value = graph_.value(id);
        const Distribution d = distribution(value.producer == kNone ? value.name : graph_.node(value.producer).layer);
        LocalValue result{.name = value.name, .desc = place(value, d), .element = value.type.element};
        if (value.state != kNone) {
            result.state = static_cast<int>(result_.states.size());
            result_.states.push_back({.spec = graph_.states()[static_cast<size_t>(value.state)], .distribution = d, .desc = result.desc});
        } else {
            result.input = value.producer == kNone;
        }
        known = static_cast<int>(result_.values.size());
        result_.values.push_back(std::move(result));
        return known;
    }

    void lower(const Node& node) {
        LocalNode result{.layer = node.layer, .phase = node.phase, .micro_batch = node.micro_batch};
        std::vector<TensorDesc> inputs, outputs;
        std::vector<ValueType> input_types, output_types;
        for (const ValueId v : node.inputs) {
            result.inputs.push_back(local(v));
            inputs.push_back(result_.values[static_cast<size_t>(result.inputs.back())].desc);
            input_types.push_back(graph_.value(v).type);
        }
        for (const ValueId v : node.outputs) {
            result.outputs.push_back(local(v));
            outputs.push_back(result_.values[static_cast<size_t>(result.outputs.back())].desc);
            output_types.push_back(graph_.value(v).type);
        }
        result.problem = Problem::single(node.op, inputs, outputs, dtype_);
        result.work = cost_of(node.op, input_types, output_types).work;
        result_.nodes.push_back(std::move(result));
    }

    const Graph& graph_;
    const Plan& plan_;
    const Target& target_;
    DType dtype_;
    Rank rank_;
    std::vector<int> local_;
    LocalGraph result_;
};

}  // namespace

LocalGraph lower(const Graph& graph, const Plan& plan, const Target& target, DType dtype, Rank rank) {
    return Lowering(graph, plan, target, dtype, rank).run();
}

}  // namespace convoy
