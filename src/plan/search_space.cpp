#include "plan/search_space.h"

#include <algorithm>
#include <map>
#include <set>

namespace convoy {

namespace {

bool has_weights(const Op& op) {
    return std::holds_alternative<ConvOp>(op) || std::holds_alternative<ConvGradInputOp>(op) || std::holds_alternative<LinearOp>(op) ||
           std::holds_alternative<LocalConvOp>(op);
}
bool of_weights(const Op& op) {
    return has_weights(op) || std::holds_alternative<ConvGradWeightOp>(op) || std::holds_alternative<LinearGradInputOp>(op) ||
           std::holds_alternative<LinearGradWeightOp>(op) || std::holds_alternative<LocalConvGradInputOp>(op) ||
           std::holds_alternative<LocalConvGradWeightOp>(op);
}
bool makes_statistics(const Op& op) { return std::holds_alternative<BatchStatsOp>(op) || std::holds_alternative<CellStatsOp>(op); }

// Biases, activations and the like are fused into what makes their input, or done in place.
bool in_place(const Op& op) {
    return std::holds_alternative<UnaryOp>(op) || std::holds_alternative<DropoutOp>(op) || std::holds_alternative<ScaleOp>(op) ||
           std::holds_alternative<BiasOp>(op) || std::holds_alternative<ReshapeOp>(op);
}

bool is_activation(const Value& value) {
    return value.state == kNone && value.type.shape.size() >= 2 && value.type.element == Element::Real;
}

class Reading {
  public:
    explicit Reading(const Graph& graph)
        : graph_(graph), with_gradient_(graph.values().size(), false), read_again_(graph.values().size(), false) {
        for (const Value& value : graph.values())
            if (value.gradient_of != kNone) with_gradient_[static_cast<size_t>(value.gradient_of)] = true;
        for (const Node& node : graph.nodes())
            if (node.phase == Phase::Backward)
                for (const ValueId v : node.inputs) read_again_[static_cast<size_t>(v)] = true;
        // What is done in place shares its memory with its input, and its gradient may go past it.
        for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
            if (node->phase != Phase::Forward || !in_place(node->op)) continue;
            const auto from = static_cast<size_t>(node->inputs[0]), to = static_cast<size_t>(node->outputs[0]);
            with_gradient_[from] = with_gradient_[from] || with_gradient_[to];
            read_again_[from] = read_again_[from] || read_again_[to];
        }
    }

    SearchSpace run() {
        space_.graph = &graph_;
        for (const Node& node : graph_.nodes()) space_.micro_batches = std::max(space_.micro_batches, node.micro_batch + 1);
        for (size_t n = 0; n < graph_.nodes().size(); ++n) {
            const Node& node = graph_.nodes()[n];
            const auto id = static_cast<NodeId>(n);
            if (node.phase == Phase::Update)
                add_update(id);
            else if (node.micro_batch == 0)
                node.phase == Phase::Forward ? add_forward(id) : add_backward(id);
        }
        find_open();
        return std::move(space_);
    }

  private:
    LabelledOp labelled(NodeId id) const {
        const Node& node = graph_.node(id);
        LabelledOp result{id, node.op, {}, {}, {}};
        for (const ValueId v : node.inputs) result.inputs.push_back(graph_.value(v).type);
        for (const ValueId v : node.outputs) result.outputs.push_back(graph_.value(v).type);
        result.signature = signature_of(node.op, result.inputs, result.outputs);
        return result;
    }

    void add_forward(NodeId id) {
        const Node& node = graph_.node(id);
        SearchOp op{.forward = labelled(id), .free = has_weights(node.op), .layer = node.layer};
        op.statistics = makes_statistics(node.op);
        op.keeps = !in_place(node.op) && !op.statistics && read_again_[static_cast<size_t>(node.outputs[0])];
        const size_t index = space_.ops.size();
        for (size_t i = 0; i < node.inputs.size(); ++i) {
            const ValueId v = node.inputs[i];
            const Value& value = graph_.value(v);
            if (value.state != kNone) {
                if (graph_.states()[static_cast<size_t>(value.state)].kind == StateKind::Parameter && readers_.emplace(v, index).second)
                    op.parameters.push_back({.value = v, .operand = i, .update = {}});
            } else if (is_activation(value) && !from_statistics(value)) {
                op.reads.push_back({i, v, with_gradient_[static_cast<size_t>(v)], !made_.count(v)});
            }
        }
        if (!op.statistics && is_activation(graph_.value(node.outputs[0])) && !op.reads.empty()) op.made = node.outputs[0];
        if (op.made != kNone) made_.insert(op.made);
        layers_[node.layer].push_back(index);
        space_.ops.push_back(std::move(op));
    }
    bool from_statistics(const Value& value) const { return value.producer != kNone && makes_statistics(graph_.node(value.producer).op); }

    // To the op of its layer that it belongs to: gradients of products to the product, others to the last that is none.
    void add_backward(NodeId id) {
        const Node& node = graph_.node(id);
        const auto at = layers_.find(node.layer);
        if (at == layers_.end()) return;
        size_t owner = at->second.back();
        for (const size_t i : at->second)
            if (space_.ops[i].made != kNone && space_.ops[i].free == of_weights(node.op)) owner = i;
        space_.ops[owner].backward.push_back(labelled(id));
    }

    void add_update(NodeId id) {
        const Node& node = graph_.node(id);
        if (node.inputs.empty() || node.outputs.empty()) return;
        const auto reader = readers_.find(node.inputs[0]);
        if (reader == readers_.end()) return;
        for (SearchParameter& p : space_.ops[reader->second].parameters) {
            if (p.value != node.inputs[0] || graph_.shape(node.outputs[0]) != graph_.shape(p.value)) continue;
            p.update = labelled(id);
            p.slots = static_cast<int>(std::count_if(node.inputs.begin(), node.inputs.end(), [&](ValueId v) {
                const int state = graph_.value(v).state;
                return state != kNone && graph_.states()[static_cast<size_t>(state)].kind == StateKind::Slot;
            }));
        }
    }

    void find_open() {
        std::map<ValueId, size_t> last;
        for (size_t i = 0; i < space_.ops.size(); ++i)
            for (const auto& read : space_.ops[i].reads) last[read.value] = i;
        std::vector<ValueId> open;
        for (size_t i = 0; i < space_.ops.size(); ++i) {
            SearchOp& op = space_.ops[i];
            if (op.made != kNone && last.count(op.made)) open.push_back(op.made);
            std::erase_if(open, [&](ValueId v) { return last.at(v) <= i; });
            std::sort(open.begin(), open.end());
            op.open = open;
        }
    }

    const Graph& graph_;
    std::vector<bool> with_gradient_, read_again_;  // read_again_: by the backward pass
    SearchSpace space_;
    std::set<ValueId> made_;
    std::map<ValueId, size_t> readers_;                  // parameter -> the op that read it first
    std::map<std::string, std::vector<size_t>> layers_;  // forward ops of each
};

}  // namespace

int LabelledOp::label_named(const std::string& name) const {
    for (size_t l = 0; l < signature.labels.size(); ++l)
        if (signature.labels[l].name == name) return static_cast<int>(l);
    return kNone;
}

size_t SearchSpace::free_ops() const {
    return static_cast<size_t>(std::count_if(ops.begin(), ops.end(), [](const SearchOp& op) { return op.free; }));
}

SearchSpace search_space(const Graph& graph) { return Reading(graph).run(); }

}  // namespace convoy
