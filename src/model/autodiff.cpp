#include "model/autodiff.h"

#include "base/error.h"
#include "model/vjp.h"

namespace convoy {

namespace {

// Which values `wrt` flows into: only these get gradients.
std::vector<bool> depends_on(const Graph& graph, const std::vector<ValueId>& wrt) {
    std::vector<bool> depends(graph.values().size(), false);
    for (const ValueId v : wrt) depends[static_cast<size_t>(v)] = true;
    for (const Node& node : graph.nodes()) {
        bool any = false;
        for (const ValueId v : node.inputs) any = any || depends[static_cast<size_t>(v)];
        if (!any) continue;
        for (const ValueId v : node.outputs)
            if (const Element e = graph.value(v).type.element; e == Element::Real || e == Element::Precise)
                depends[static_cast<size_t>(v)] = true;
    }
    return depends;
}

// Gradients as they gather: each value has a list of contributions, added up when the value's own producer is reached.
class Gradients {
  public:
    explicit Gradients(Graph& graph) : graph_(graph), parts_(graph.values().size()) {}

    void add(ValueId value, ValueId gradient) {
        graph_.mark_gradient(gradient, value);
        parts_[static_cast<size_t>(value)].push_back(gradient);
    }

    ValueId sum(ValueId value, const std::string& layer) {
        auto& parts = parts_[static_cast<size_t>(value)];
        if (parts.empty()) return kNone;
        if (parts.size() > 1) {
            parts = {graph_.add1(AddOp{}, parts, layer)};
            graph_.mark_gradient(parts[0], value);
        }
        return parts[0];
    }

  private:
    Graph& graph_;
    std::vector<std::vector<ValueId>> parts_;
};

}  // namespace

std::vector<ValueId> backward(Graph& graph, const std::vector<std::pair<ValueId, ValueId>>& seeds, const std::vector<ValueId>& wrt) {
    const auto depends = depends_on(graph, wrt);
    const auto node_count = static_cast<NodeId>(graph.nodes().size());
    Gradients gradients(graph);
    for (const auto& [value, seed] : seeds) {
        CONVOY_CHECK(graph.shape(value) == graph.shape(seed), "a gradient of {} for a value of {}", to_string(graph.shape(seed)),
                     to_string(graph.shape(value)));
        if (depends[static_cast<size_t>(value)]) gradients.add(value, seed);
    }
    for (NodeId id = node_count - 1; id >= 0; --id) {
        const Node node = graph.node(id);  // a copy: the graph grows below
        std::vector<ValueId> dy;
        std::vector<bool> needed;
        bool flows = false, wanted = false;
        for (const ValueId v : node.inputs) {
            needed.push_back(depends[static_cast<size_t>(v)]);
            wanted = wanted || needed.back();
        }
        if (!wanted) continue;
        for (const ValueId v : node.outputs) {
            dy.push_back(gradients.sum(v, node.layer));
            flows = flows || dy.back() != kNone;
        }
        if (!flows) continue;
        VjpContext context{graph, node, dy, needed, std::vector<ValueId>(node.inputs.size(), kNone)};
        apply_vjp(context);
        for (size_t i = 0; i < node.inputs.size(); ++i)
            if (needed[i] && context.dx[i] != kNone) gradients.add(node.inputs[i], context.dx[i]);
    }
    std::vector<ValueId> result;
    for (const ValueId v : wrt) result.push_back(gradients.sum(v, graph.value(v).name));
    return result;
}

}  // namespace convoy
