// Fusion: several nodes become one problem where the target can do them in one pass. Nothing here knows a backend: each pattern is proposed as a
// problem, and it is taken when the target offers a candidate for it.
//
//     chains     a result with a single reader disappears inside it: convolution + bias + ReLU, normalise + add + ReLU, the gradient of a ReLU in that of
//                max pooling
//     siblings   the gradients of a weight and of its bias read the same dy
//     masks      the gradient of a ReLU after batch norm is recomputed where it is needed, from what batch norm reads anyway; that of one after a
//                bias is made by the pass that sums the bias's gradient; where two gradients meet before it, that pass adds them too
//     updates    those of many parameters by one rule
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "program/local_graph.h"

namespace convoy {

namespace {

template <class T>
const T* single(const LocalNode& node) {
    return node.problem.steps.size() == 1 ? std::get_if<T>(&node.problem.steps[0].op) : nullptr;
}

// The nodes as one problem. `keep` are the results that are still read from outside.
LocalNode merge(const LocalGraph& graph, const std::vector<LocalNode>& parts, const std::vector<int>& keep) {
    LocalNode result = parts.back();
    result.inputs.clear();
    result.outputs = keep;
    result.work = 0;
    std::set<int> made;
    for (const LocalNode& part : parts) {
        result.work += part.work;
        for (const int v : part.inputs)
            if (!made.count(v) && std::find(result.inputs.begin(), result.inputs.end(), v) == result.inputs.end())
                result.inputs.push_back(v);
        made.insert(part.outputs.begin(), part.outputs.end());
    }
    Problem problem{.inputs = static_cast<int>(result.inputs.size()),
                    .outputs = static_cast<int>(keep.size()),
                    .compute = parts.back().problem.compute};
    std::map<int, int> index;
    const auto number = [&](int v) {
        const auto [at, fresh] = index.emplace(v, static_cast<int>(problem.tensors.size()));
        if (fresh) problem.tensors.push_back(graph.values[static_cast<size_t>(v)].desc);
        return at->second;
    };
    for (const int v : result.inputs) number(v);
    for (const int v : keep) number(v);
    for (const LocalNode& part : parts) {
        const auto outer = [&](int t) {  // the value behind a tensor of the part's own problem, or a fresh number for what stayed inside it
            if (t < part.problem.inputs) return number(part.inputs[static_cast<size_t>(t)]);
            if (t < part.problem.inputs + part.problem.outputs) return number(part.outputs[static_cast<size_t>(t - part.problem.inputs)]);
            return -1;
        };
        std::map<int, int> inside;
        for (const ProblemStep& step : part.problem.steps) {
            ProblemStep copy{step.op, {}, {}};
            const auto translate = [&](int t) {
                if (const int o = outer(t); o >= 0) return o;
                const auto [at, fresh] = inside.emplace(t, static_cast<int>(problem.tensors.size()));
                if (fresh) problem.tensors.push_back(part.problem.tensors[static_cast<size_t>(t)]);
                return at->second;
            };
            for (const int t : step.inputs) copy.inputs.push_back(translate(t));
            for (const int t : step.outputs) copy.outputs.push_back(translate(t));
            problem.steps.push_back(std::move(copy));
        }
    }
    result.problem = std::move(problem);
    return result;
}

class Fusing {
  public:
    Fusing(LocalGraph& graph, const Target& target) : graph_(graph), target_(target) { index(); }

    void run() {
        fuse_masks();
        fuse_siblings();
        fuse_chains();
        fuse_updates();
        std::vector<LocalNode> nodes;
        for (size_t n = 0; n < graph_.nodes.size(); ++n)
            if (!gone_[n]) nodes.push_back(std::move(graph_.nodes[n]));
        graph_.nodes = std::move(nodes);
    }

  private:
    using NodeIndex = size_t;

    void index() {
        producer_.assign(graph_.values.size(), std::nullopt);
        readers_.assign(graph_.values.size(), {});
        gone_.assign(graph_.nodes.size(), false);
        for (NodeIndex n = 0; n < graph_.nodes.size(); ++n) add_to_index(n);
        for (const LocalStore& store : graph_.stores) kept_.insert(store.value);
        for (size_t v = 0; v < graph_.values.size(); ++v)
            if (graph_.values[v].output) kept_.insert(static_cast<int>(v));
    }

    void add_to_index(NodeIndex n) {
        for (const int v : graph_.nodes[n].outputs) producer_[static_cast<size_t>(v)] = n;
        for (const int v : graph_.nodes[n].inputs) readers_[static_cast<size_t>(v)].insert(n);
    }

    void remove(NodeIndex n) {
        gone_[n] = true;
        for (const int v : graph_.nodes[n].inputs) readers_[static_cast<size_t>(v)].erase(n);
    }

    void replace(NodeIndex n, LocalNode node) {
        for (const int v : graph_.nodes[n].inputs) readers_[static_cast<size_t>(v)].erase(n);
        graph_.nodes[n] = std::move(node);
        add_to_index(n);
    }

    const LocalNode& node(NodeIndex n) const { return graph_.nodes[n]; }
    const std::set<NodeIndex>& readers(int v) const { return readers_[static_cast<size_t>(v)]; }
    std::optional<NodeIndex> producer(int v) const { return producer_[static_cast<size_t>(v)]; }
    bool accepted(const LocalNode& fused) const { return !target_.candidates(fused.problem).empty(); }

    // The node that computes v, when it is a single op of this kind.
    template <class T>
    std::optional<NodeIndex> made_by(int v) const {
        const auto n = producer(v);
        return n && !gone_[*n] && single<T>(node(*n)) ? n : std::nullopt;
    }

    // d = relu'(y) dy is read by the two gradients of the batch norm under that ReLU.
    void fuse_masks() {
        for (NodeIndex n = 0; n < graph_.nodes.size(); ++n) {
            const auto* grad = single<UnaryGradOp>(node(n));
            if (!grad || kept_.count(node(n).outputs[0])) continue;
            if (grad->kind == Unary::Relu && recompute_mask(n)) continue;
            if (grad->kind == Unary::Relu && mask_with_sums<BatchNormGradSumsOp>(n, 1)) continue;
            mask_with_sums<BiasGradOp>(n, 0);
        }
    }

    // Nobody else reads d: both gradients find the mask again from what they read anyway, and neither d nor y is touched.
    bool recompute_mask(NodeIndex n) {
        const int y = node(n).inputs[0], dy = node(n).inputs[1], d = node(n).outputs[0];
        const auto relu = made_by<UnaryOp>(y);
        if (!relu) return false;
        const auto norm = made_by<BatchNormalizeOp>(node(*relu).inputs[0]);
        if (!norm) return false;
        const int x = node(*norm).inputs[0], z = node(*norm).outputs[0];
        std::vector<std::pair<NodeIndex, LocalNode>> fused;
        for (const NodeIndex r : readers(d)) {
            const LocalNode& reader = node(r);
            const bool gradient = single<BatchNormGradSumsOp>(reader) || single<BatchNormGradInputOp>(reader);
            if (!gradient || reader.inputs[0] != x || reader.inputs[1] != d) return false;
            LocalNode mask = node(n);
            mask.inputs = {z, dy};
            fused.emplace_back(r, merge(graph_, {node(*norm), mask, reader}, reader.outputs));
            if (!accepted(fused.back().second)) return false;
        }
        if (fused.empty()) return false;
        remove(n);
        for (auto& [r, replacement] : fused) replace(r, std::move(replacement));
        return true;
    }

    // Others read d too (a skip connection, a convolution): it is written once, by the pass that also computes the sums, as whose `operand`-th
    // input it enters.
    template <class Sums>
    bool mask_with_sums(NodeIndex n, size_t operand) {
        const int d = node(n).outputs[0];
        for (const NodeIndex r : readers(d)) {
            const LocalNode& reader = node(r);
            if (!single<Sums>(reader) || reader.inputs[operand] != d || *readers(d).begin() != r) continue;
            std::vector<int> keep{d};
            keep.insert(keep.end(), reader.outputs.begin(), reader.outputs.end());
            // Where a skip connection parts, dy is itself a sum that nobody else reads.
            const int dy = node(n).inputs[1];
            if (const auto sum = made_by<AddOp>(dy); sum && readers(dy).size() == 1 && !kept_.count(dy)) {
                LocalNode fused = merge(graph_, {node(*sum), node(n), reader}, keep);
                if (accepted(fused)) {
                    remove(*sum);
                    remove(n);
                    replace(r, std::move(fused));
                    return true;
                }
            }
            LocalNode fused = merge(graph_, {node(n), reader}, keep);
            if (!accepted(fused)) return false;
            remove(n);
            replace(r, std::move(fused));
            return true;
        }
        return false;
    }

    // The gradients of a weight and of the bias beside it.
    void fuse_siblings() {
        for (NodeIndex n = 0; n < graph_.nodes.size(); ++n) {
            if (gone_[n] || !(single<ConvGradWeightOp>(node(n)) || single<LinearGradWeightOp>(node(n)))) continue;
            const int dy = node(n).inputs[1];
            for (const NodeIndex r : readers(dy)) {
                if (!single<BiasGradOp>(node(r)) || node(r).layer != node(n).layer) continue;
                const auto [first, last] = std::minmax(n, r);
                LocalNode fused = merge(graph_, {node(n), node(r)}, {node(n).outputs[0], node(r).outputs[0]});
                if (!accepted(fused) || read_before(node(first), last)) break;
                remove(first);
                replace(last, std::move(fused));
                break;
            }
        }
    }

    // Whether something reads a result of `early` before the node `late`: then it cannot move down to it.
    bool read_before(const LocalNode& early, NodeIndex late) const {
        for (const int v : early.outputs)
            for (const NodeIndex r : readers(v))
                if (r < late) return true;
        return false;
    }

    // Where a node's input is made by a node that nobody else reads, the two are one if the target can do it. Bottom-up, so that chains grow.
    void fuse_chains() {
        for (NodeIndex n = 0; n < graph_.nodes.size(); ++n) {
            if (gone_[n] || !ends_chain(node(n))) continue;
            for (const int v : std::vector<int>(node(n).inputs)) {
                const auto from = producer(v);
                if (!from || gone_[*from] || node(*from).traffic || readers(v).size() != 1 || kept_.count(v) ||
                    node(*from).phase != node(n).phase)
                    continue;
                std::vector<int> keep;
                for (const int o : node(*from).outputs)
                    if (o != v && (!readers(o).empty() || kept_.count(o))) keep.push_back(o);
                keep.insert(keep.end(), node(n).outputs.begin(), node(n).outputs.end());
                LocalNode fused = merge(graph_, {node(*from), node(n)}, keep);
                if (!accepted(fused) || read_before(node(*from), n)) continue;
                remove(*from);
                replace(n, std::move(fused));
                break;
            }
        }
    }

    // Updates by one rule become one, a limited number at a time, because gradients live until the last of them is there; those of small tensors in larger groups,
    // which together hold back no more than a single update may. One of many elements takes long enough by itself.
    void fuse_updates() {
        constexpr size_t kMost = 32, kMostSmall = 256;
        constexpr int64_t kMany = 4 << 20;
        std::vector<NodeIndex> group;
        int64_t held = 0;  // elements of the group
        const auto close = [&] {
            if (group.size() > 1) merge_updates(group);
            group.clear();
            held = 0;
        };
        for (NodeIndex n = 0; n < graph_.nodes.size(); ++n) {
            if (gone_[n] || !single<UpdateOp>(node(n))) continue;
            const int64_t elements = numel(graph_.values[static_cast<size_t>(node(n).inputs[0])].desc.shape);
            if (elements >= kMany) continue;
            const auto unlike = [&](NodeIndex m) { return *single<UpdateOp>(node(m)) != *single<UpdateOp>(node(n)); };
            const size_t most = held + elements < kMany ? kMostSmall : kMost;
            if (group.size() >= most || (!group.empty() && unlike(group[0]))) close();
            group.push_back(n);
            held += elements;
        }
        close();
    }

    void merge_updates(const std::vector<NodeIndex>& group) {
        std::vector<LocalNode> parts;
        std::vector<int> keep;
        for (const NodeIndex n : group) {
            if (read_before(node(n), group.back())) return;
            parts.push_back(node(n));
            keep.insert(keep.end(), node(n).outputs.begin(), node(n).outputs.end());
        }
        LocalNode fused = merge(graph_, parts, keep);
        if (!accepted(fused)) return;
        for (const NodeIndex n : group)
            if (n != group.back()) remove(n);
        replace(group.back(), std::move(fused));
    }

    static bool ends_chain(const LocalNode& node) {
        return single<BiasOp>(node) || single<UnaryOp>(node) || single<AddOp>(node) || single<MaxPoolGradOp>(node);
    }

    LocalGraph& graph_;
    const Target& target_;
    std::vector<std::optional<NodeIndex>> producer_;
    std::vector<std::set<NodeIndex>> readers_;
    std::vector<bool> gone_;
    std::set<int> kept_;  // read from outside
};

}  // namespace

void fuse(LocalGraph& graph, const Target& target) { Fusing(graph, target).run(); }

}  // namespace convoy
