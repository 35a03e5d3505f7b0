// A candidate for every problem, and the copies that differing layouts make necessary. Values keep the layout their producer gives them; a node
// takes the candidate that is cheapest together with the copies it needs, the target's own order deciding among equals.
#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "base/error.h"
#include "program/local_graph.h"

namespace convoy {

namespace {

class Choosing {
  public:
    Choosing(LocalGraph& graph, const Target& target, const Costs& costs)
        : graph_(graph), target_(target), costs_(costs), fixed_(graph.values.size(), false) {}

    void run(const Program* share_state_with) {
        for (auto& value : graph_.values)
            if (value.input) fixed_[static_cast<size_t>(&value - graph_.values.data())] = true;  // inputs are plain
        if (share_state_with) share_states(*share_state_with);
        std::vector<LocalNode> nodes = std::move(graph_.nodes);
        graph_.nodes.clear();
        for (LocalNode& node : nodes) {
            node.candidate = choose(node);
            for (size_t i = 0; i < node.inputs.size(); ++i)
                node.inputs[i] = as_wanted(node.inputs[i], node.candidate.inputs[i], wanted_type(node.candidate, i, node.inputs[i]), node);
            for (size_t i = 0; i < node.outputs.size(); ++i) fix(node.outputs[i], node.candidate.outputs[i]);
            graph_.nodes.push_back(std::move(node));
        }
        resolve_stores();
        for (const LocalValue& value : graph_.values)
            if (value.state != kNone) graph_.states[static_cast<size_t>(value.state)].layout = value.layout;
    }

  private:
    LocalValue& value(int v) { return graph_.values[static_cast<size_t>(v)]; }

    void fix(int v, const Layout& layout) {
        value(v).layout = layout;
        fixed_[static_cast<size_t>(v)] = true;
    }

    void share_states(const Program& other) {
        std::map<std::string, const StateBinding*> known;
        for (const auto& state : other.states) known[state.spec.name] = &state;
        for (size_t v = 0; v < graph_.values.size(); ++v) {
            const int state = graph_.values[v].state;
            if (state == kNone) continue;
            const auto found = known.find(graph_.states[static_cast<size_t>(state)].spec.name);
            if (found != known.end()) fix(static_cast<int>(v), found->second->layout);
        }
    }

    double copy_seconds(const LocalValue& v, const Layout& to, DType type) const {
        return costs_.copy_seconds({.shape = v.desc.shape, .from_type = v.desc.dtype, .to_type = type, .from = v.layout, .to = to});
    }

    // The type in which a candidate wants its i-th input, which is v.
    DType wanted_type(const Candidate& candidate, size_t i, int v) {
        return candidate.input_types.empty() ? value(v).desc.dtype : candidate.input_types[i];
    }

    // Wires are plain. A gradient is summed in the layout of its parameter, which is the same on all ranks.
    Candidate choose_traffic(const LocalNode& node) {
        const auto* collective = std::get_if<Collective>(&*node.traffic);
        const bool sums = collective && collective->kind == Collective::Kind::AllReduce;
        Candidate candidate{.algorithm = "traffic"};
        for (size_t i = 0; i < node.inputs.size(); ++i) {
            const int like = node.like.empty() ? kNone : node.like[i];
            const bool known = like != kNone && fixed_[static_cast<size_t>(like)];
            candidate.inputs.push_back(known ? value(like).layout : Layout::plain());
        }
        candidate.outputs = candidate.inputs;
        if (sums && node.inputs.size() == 1) candidate.in_place = {{0, 0}};  // several are gathered in one place
        return candidate;
    }

    Candidate choose(const LocalNode& node) {
        if (node.traffic) return choose_traffic(node);
        auto candidates = target_.candidates(node.problem);
        CONVOY_CHECK(!candidates.empty(), "{} has no way to compute {} \"{}\"", target_.name(), text_of(node.problem), node.layer);
        double best_seconds = std::numeric_limits<double>::infinity();
        size_t best = 0;
        for (size_t c = 0; c < candidates.size(); ++c) {
            CONVOY_CHECK(candidates[c].inputs.size() == node.inputs.size() && candidates[c].outputs.size() == node.outputs.size(),
                         "candidate {} of {} lists other operands than the problem", candidates[c].algorithm, text_of(node.problem));
            settle_same(node, candidates[c]);
            double seconds = costs_.seconds(node.problem, candidates[c]);
            for (size_t i = 0; i < node.inputs.size(); ++i) {
                const LocalValue& in = value(node.inputs[i]);
                if (fixed_[static_cast<size_t>(node.inputs[i])] && !equivalent(in.desc.shape, in.layout, candidates[c].inputs[i]))
                    seconds += copy_seconds(in, candidates[c].inputs[i], wanted_type(candidates[c], i, node.inputs[i]));
            }
            if (seconds < best_seconds) {
                best_seconds = seconds;
                best = c;
            }
        }
        return std::move(candidates[best]);
    }

    // Operands marked "same" take the layout of the state among them, or else of the largest that has one already.
    void settle_same(const LocalNode& node, Candidate& candidate) {
        struct Settled {
            Layout layout;
            int64_t weight = -1;
        };
        std::map<std::string, Settled> settled;  // by mark
        for (size_t i = 0; i < node.inputs.size(); ++i) {
            if (!candidate.inputs[i].is_same()) continue;
            Settled& s = settled[candidate.inputs[i].opaque];
            const LocalValue& in = value(node.inputs[i]);
            const int64_t w = in.state != kNone ? INT64_MAX : numel(in.desc.shape);
            if (!fixed_[static_cast<size_t>(node.inputs[i])] || w <= s.weight) continue;
            s = {in.layout, w};
        }
        for (auto* list : {&candidate.inputs, &candidate.outputs})
            for (Layout& l : *list)
                if (l.is_same()) l = settled[l.opaque].layout;
    }

    // The value in the wanted layout and type: itself, or a copy that later readers share (a mere view where the memory is alike). A state whose
    // layout is still open takes the first reader's.
    int as_wanted(int v, const Layout& wanted, DType type, const LocalNode& reader) {
        if (!fixed_[static_cast<size_t>(v)]) fix(v, wanted);
        if (value(v).layout == wanted && value(v).desc.dtype == type) return v;
        auto& copies = copies_[v];
        for (const int c : copies)
            if (value(c).layout == wanted && value(c).desc.dtype == type) return c;
        LocalValue copy = value(v);
        copy.state = kNone;
        copy.input = copy.output = false;
        copy.layout = wanted;
        copy.desc.dtype = type;
        const int id = add_value(std::move(copy));
        add_copy(v, id, reader.layer, reader.phase, reader.micro_batch);
        copies.push_back(id);
        return id;
    }

    int add_value(LocalValue v) {
        graph_.values.push_back(std::move(v));
        fixed_.push_back(true);
        return static_cast<int>(graph_.values.size()) - 1;
    }

    void add_copy(int from, int to, const std::string& layer, Phase phase, int micro_batch) {
        LocalNode node{.inputs = {from}, .outputs = {to}, .layer = layer, .phase = phase, .micro_batch = micro_batch, .copy = true};
        node.candidate = {.algorithm = "copy", .inputs = {value(from).layout}, .outputs = {value(to).layout}};
        graph_.nodes.push_back(std::move(node));
    }

    // Where the producer of a state's next version can write it in the place of the old one, and nobody reads the old one later, the two are
    // one slot; otherwise the new version is copied into the state at the end of the step.
    void resolve_stores() {
        for (const LocalStore& store : graph_.stores) {
            if (writes_in_place(store)) {
                value(store.value).state = value(store.state).state;
                continue;
            }
            LocalValue next = value(store.state);
            const int id = add_value(std::move(next));
            add_copy(store.value, id, value(store.state).name, Phase::Update, 0);
        }
    }

    bool writes_in_place(const LocalStore& store) {
        if (value(store.value).layout != value(store.state).layout) return false;
        std::optional<size_t> writer;
        for (size_t n = 0; n < graph_.nodes.size(); ++n) {
            const LocalNode& node = graph_.nodes[n];
            if (writer && std::find(node.inputs.begin(), node.inputs.end(), store.state) != node.inputs.end()) return false;
            const auto out = std::find(node.outputs.begin(), node.outputs.end(), store.value);
            if (out == node.outputs.end()) continue;
            const auto o = static_cast<int>(out - node.outputs.begin());
            for (const auto& [output, input] : node.candidate.in_place)
                if (output == o && node.inputs[static_cast<size_t>(input)] == store.state) writer = n;
            if (!writer) return false;
        }
        return writer.has_value();
    }

    LocalGraph& graph_;
    const Target& target_;
    const Costs& costs_;
    std::vector<bool> fixed_;
    std::map<int, std::vector<int>> copies_;
};

}  // namespace

void choose(LocalGraph& graph, const Target& target, const Costs& costs, const Program* share_state_with) {
    Choosing(graph, target, costs).run(share_state_with);
}

}  // namespace convoy
