// Updates that wait for gradient traffic need not be over when the step is: they run in the next step, before the first instruction that needs what they write, and the
// traffic goes on beside the next forward pass meanwhile. The numbers are the same.
//
// Carried are the trailing updates, and the copies, views and gathering of what was updated in parts on the way to the next step, where they need no more than their own
// gradient (no norm), and nothing that comes later in the step reads what they write or overwrites what they read. What is set anew for every step they read from a copy.
//
// The gradients of the layers that the forward pass comes to last are made first. They get a queue of their own, so that those of the first layers, which
// are made last and needed first, do not wait for them.
#include <algorithm>
#include <set>

#include "base/error.h"
#include "model/cost.h"
#include "program/local_graph.h"

namespace convoy {

namespace {

constexpr double kLate = 0.75;  // of the forward pass's work

// Whether every step is an UpdateOp.
bool updates(const LocalNode& node) {
    return !node.traffic && !node.copy && node.phase == Phase::Update &&
           std::all_of(node.problem.steps.begin(), node.problem.steps.end(),
                       [](const ProblemStep& step) { return std::holds_alternative<UpdateOp>(step.op); });
}

// Whether it only puts elements elsewhere.
bool moves(const LocalNode& node) {
    if (node.traffic) return false;
    if (node.copy) return true;
    if (node.problem.steps.size() != 1) return false;
    const Op& op = node.problem.steps[0].op;
    return std::holds_alternative<ReshapeOp>(op) || std::holds_alternative<SliceOp>(op) || std::holds_alternative<PackOp>(op) ||
           std::holds_alternative<UnpackOp>(op);
}

class Carrying {
  public:
    explicit Carrying(LocalGraph& graph) : graph_(graph), may_(graph.nodes.size(), false), readers_(graph.values.size()) {
        for (size_t n = 0; n < graph.nodes.size(); ++n)
            for (const int v : graph.nodes[n].inputs) readers_[static_cast<size_t>(v)].push_back(n);
    }

    void run() {
        find_candidates();
        drop_needed();
        for (LocalNode& node : graph_.nodes)
            if (node.traffic && is_gradient_queue(node.queue)) node.carried = only_carried_read(node);
        keep_inputs();
    }

  private:
    LocalNode& node(size_t n) { return graph_.nodes[n]; }
    const LocalValue& value(int v) const { return graph_.values[static_cast<size_t>(v)]; }

    // What depends on gradient traffic, and on nothing else that does.
    void find_candidates() {
        enum class From : uint8_t { Step, Gradients, Other };
        std::vector<From> from(graph_.values.size(), From::Step);
        for (size_t n = 0; n < graph_.nodes.size(); ++n) {
            bool gradients = node(n).traffic && is_gradient_queue(node(n).queue), other = false;
            for (const int v : node(n).inputs) {
                gradients = gradients || from[static_cast<size_t>(v)] == From::Gradients;
                other = other || from[static_cast<size_t>(v)] == From::Other;
            }
            may_[n] = gradients && !other && (updates(node(n)) || moves(node(n)));
            const bool passes = may_[n] || (gradients && node(n).traffic && !other);
            for (const int v : node(n).outputs) {
                if (value(v).output) may_[n] = false;
                from[static_cast<size_t>(v)] = !gradients && !other         ? From::Step
                                               : passes && !value(v).output ? From::Gradients
                                                                            : From::Other;
            }
        }
    }

    // From the end: only what nothing that stays needs, nor spoils.
    void drop_needed() {
        std::set<std::pair<bool, int>> read, written;  // by what stays: values, or states
        const auto place = [&](int v) { return value(v).state == kNone ? std::pair(false, v) : std::pair(true, value(v).state); };
        for (size_t n = graph_.nodes.size(); n-- > 0;) {
            LocalNode& at = node(n);
            const auto in = [&](const auto& set, const std::vector<int>& values) {
                return std::any_of(values.begin(), values.end(), [&](int v) { return set.count(place(v)) > 0; });
            };
            at.carried = may_[n] && !in(read, at.outputs) && !in(written, at.outputs) && !in(written, at.inputs);
            if (at.carried) continue;
            for (const int v : at.inputs) read.insert(place(v));
            for (const int v : at.outputs) written.insert(place(v));
        }
    }

    bool only_carried_read(const LocalNode& traffic) {
        bool any = false;
        for (const int v : traffic.outputs) {
            if (value(v).output) return false;
            for (const size_t r : readers_[static_cast<size_t>(v)]) {
                if (!node(r).carried || node(r).traffic) return false;
                any = true;
            }
        }
        return any;
    }

    // Inputs, and what may be only another name for one.
    void keep_inputs() {
        std::vector<bool> input(graph_.values.size());
        for (size_t v = 0; v < input.size(); ++v) input[v] = graph_.values[v].input;
        std::vector<int> kept(graph_.values.size(), kNone);
        std::vector<std::pair<size_t, LocalNode>> copies;  // before which node: the first that reads it
        for (size_t n = 0; n < graph_.nodes.size(); ++n) {
            if (!node(n).carried) {
                if (moves(node(n)) && input[static_cast<size_t>(node(n).inputs[0])]) input[static_cast<size_t>(node(n).outputs[0])] = true;
                continue;
            }
            if (node(n).traffic) continue;
            for (int& v : node(n).inputs) {
                if (!input[static_cast<size_t>(v)]) continue;
                int& copy = kept[static_cast<size_t>(v)];
                if (copy == kNone) {
                    copies.emplace_back(n, LocalNode{});
                    copy = make_copy(v, copies.back().second);
                }
                v = copy;
            }
        }
        for (auto copy = copies.rbegin(); copy != copies.rend(); ++copy)
            graph_.nodes.insert(graph_.nodes.begin() + static_cast<std::ptrdiff_t>(copy->first), std::move(copy->second));
    }

    int make_copy(int v, LocalNode& made) {
        LocalValue copy = value(v);
        copy.input = copy.output = false;
        graph_.values.push_back(copy);
        const int id = static_cast<int>(graph_.values.size()) - 1;
        made = {.inputs = {v}, .outputs = {id}, .layer = copy.name, .phase = Phase::Update, .copy = true, .apart = true};
        made.candidate = {.algorithm = "copy", .inputs = {copy.layout}, .outputs = {copy.layout}};
        return id;
    }

    LocalGraph& graph_;
    std::vector<bool> may_;
    std::vector<std::vector<size_t>> readers_;
};

}  // namespace

std::vector<bool> late_parameters(const Graph& graph) {
    const auto forward = [](const Node& node) { return node.phase == Phase::Forward && node.micro_batch == 0; };
    double total = 0, done = 0;
    for (const Node& node : graph.nodes())
        if (forward(node)) total += cost_of(graph, node).work;
    std::vector<bool> late(graph.values().size(), false), seen(graph.values().size(), false);
    for (const Node& node : graph.nodes()) {
        if (!forward(node)) continue;
        for (const ValueId v : node.inputs) {
            if (graph.value(v).state == kNone || seen[static_cast<size_t>(v)]) continue;
            seen[static_cast<size_t>(v)] = true;
            late[static_cast<size_t>(v)] = done > kLate * total;
        }
        done += cost_of(graph, node).work;
    }
    const auto needed = [&](ValueId gradient) {
        if (const ValueId of = graph.value(gradient).gradient_of; of != kNone) late[static_cast<size_t>(of)] = false;
    };
    for (const Node& node : graph.nodes())
        if (node.phase == Phase::Update && !std::holds_alternative<UpdateOp>(node.op))
            for (const ValueId v : node.inputs) needed(v);
    for (const NamedValue& output : graph.outputs()) needed(output.value);
    return late;
}

void carry(LocalGraph& graph) { Carrying(graph).run(); }

}  // namespace convoy
