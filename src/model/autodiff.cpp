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

// Finds max pooling whose input is an activation's output that nothing else reads.
class PooledActivations {
  public:
    // `kept` are values whose own gradient is asked for or given.
    PooledActivations(const Graph& graph, const std::vector<ValueId>& kept) : readers_(graph.values().size(), 0) {
        for (const Node& node : graph.nodes())
            for (const ValueId v : node.inputs) ++readers_[static_cast<size_t>(v)];
        for (const ValueId v : kept) readers_[static_cast<size_t>(v)] = kMany;
    }

    // The activation's node, when its gradient reads its output; else kNone.
    NodeId under(const Graph& graph, const Node& pool) const {
        if (!std::holds_alternative<MaxPoolOp>(pool.op) || readers_[static_cast<size_t>(pool.inputs[0])] != 1) return kNone;
        const NodeId producer = graph.value(pool.inputs[0]).producer;
        if (producer == kNone) return kNone;
        const auto* const activation = std::get_if<UnaryOp>(&graph.node(producer).op);
        return activation && grad_reads_output(activation->kind) ? producer : kNone;
    }

  private:
    static constexpr int kMany = 2;
    std::vector<int> readers_;
};

}  // namespace

std::vector<ValueId> backward(Graph& graph, const std::vector<std::pair<ValueId, ValueId>>& seeds, const std::vector<ValueId>& wrt) {
    const auto depends = depends_on(graph, wrt);
    const auto node_count = static_cast<NodeId>(graph.nodes().size());
    Gradients gradients(graph);
    std::vector<ValueId> kept = wrt;
    for (const auto& [value, seed] : seeds) {
        kept.push_back(value);
        CONVOY_CHECK(graph.shape(value) == graph.shape(seed), "a gradient of {} for a value of {}", to_string(graph.shape(seed)),
                     to_string(graph.shape(value)));
        if (depends[static_cast<size_t>(value)]) gradients.add(value, seed);
    }
    const PooledActivations pooled(graph, kept);
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
        // Where a maximum lies, the activation's output is what pooling gave. So its gradient is taken before that of the pooling, where there is less of it,
        // and nothing of the activation's size need be kept.
        std::vector<ValueId> receivers = node.inputs;
        if (const NodeId activation = pooled.under(graph, node); activation != kNone) {
            receivers[0] = graph.node(activation).inputs[0];
            const auto op = std::get<UnaryOp>(graph.node(activation).op);
            dy[0] = graph.add1(UnaryGradOp{op.kind, op.alpha}, {node.outputs[0], dy[0]}, node.layer);
            graph.mark_gradient(dy[0], node.outputs[0]);
        }
        VjpContext context{graph, node, dy, needed, std::vector<ValueId>(node.inputs.size(), kNone)};
        apply_vjp(context);
        for (size_t i = 0; i < node.inputs.size(); ++i) {
            if (!needed[i] || context.dx[i] == kNone) continue;
            graph.mark_gradient(context.dx[i], node.inputs[i]);
            gradients.add(receivers[i], context.dx[i]);
        }
    }
    std::vector<ValueId> result;
    for (const ValueId v : wrt) result.push_back(gradients.sum(v, graph.value(v).name));
    return result;
}

}  // namespace convoy
