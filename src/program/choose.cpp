// A candidate for every problem and a layout for every state, chosen together over the whole graph (program/choice.h says how), and the copies that differing
// layouts make necessary. A value has the layout that its producer gives it; a copy is made once and shared by all who want that layout.
//
// The search begins with the choice that goes through the list once and takes for each node what is cheapest with the copies its inputs need, so the result is never
// worse than that.
#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "base/error.h"
#include "program/choice.h"
#include "program/local_graph.h"

namespace convoy {

namespace {

// One option of a node: a candidate with its layouts settled.
struct Option {
    Candidate candidate;
    double seconds = 0;
};

// What a variable of the search stands for: a node, one group of operands marked "same" of a node with many such groups, or a state. Its options are the
// node's candidates, or layouts.
struct Variable {
    std::vector<Option> candidates;
    std::vector<Layout> layouts;
    size_t size() const { return candidates.empty() ? layouts.size() : candidates.size(); }
};

void add_once(std::vector<Layout>& list, const Layout& layout) {
    if (std::find(list.begin(), list.end(), layout) == list.end()) list.push_back(layout);
}

// How a node enters the search.
struct NodeVariables {
    int variable = kNone;                // its candidates; kNone: it has only one, whose operands are listed here
    std::optional<Candidate> only;       // with its marks
    std::map<std::string, int> of_mark;  // variables of the groups marked "same"
    std::vector<int> inputs, outputs;    // traffic: the variable behind each operand; kNone: plain
};

class Choosing {
  public:
    Choosing(LocalGraph& graph, const Target& target, const ChooseOptions& options)
        : graph_(graph), target_(target), options_(options), domains_(graph.values.size()), state_variable_(graph.values.size(), kNone) {}

    void run() {
        collect_candidates();
        find_domains();
        make_variables();
        link();
        const std::vector<int> chosen = improved(choice_, greedy());
        settle(chosen);
    }

  private:
    LocalValue& value(int v) { return graph_.values[static_cast<size_t>(v)]; }
    const TensorDesc& desc(int v) const { return graph_.values[static_cast<size_t>(v)].desc; }
    std::vector<Layout>& domain(int v) { return domains_[static_cast<size_t>(v)]; }

    void collect_candidates() {
        for (const LocalNode& node : graph_.nodes) {
            found_.emplace_back();
            if (node.traffic) continue;
            found_.back() = target_.candidates(node.problem);
            CONVOY_CHECK(!found_.back().empty(), "{} has no way to compute {} \"{}\"", target_.name(), text_of(node.problem), node.layer);
            for (const Candidate& c : found_.back())
                CONVOY_CHECK(c.inputs.size() == node.inputs.size() && c.outputs.size() == node.outputs.size(),
                             "candidate {} of {} lists other operands than the problem", c.algorithm, text_of(node.problem));
        }
    }

    // --- The layouts in which a value may be made -----------------------------------------------------------------------------------

    void find_domains() {
        std::map<std::string, Layout> known;
        if (options_.share_state_with)
            for (const auto& state : options_.share_state_with->states) known[state.spec.name] = state.layout;
        std::vector<bool> settled(graph_.values.size(), false);
        for (size_t v = 0; v < graph_.values.size(); ++v) {
            const LocalValue& val = graph_.values[v];
            if (val.input) domains_[v] = {Layout::plain()};
            if (val.state == kNone) continue;
            const auto found = known.find(graph_.states[static_cast<size_t>(val.state)].spec.name);
            if (found == known.end()) continue;
            domains_[v] = {found->second};
            settled[v] = true;
        }
        const auto open_state = [&](int v) { return value(v).state != kNone && !settled[static_cast<size_t>(v)]; };
        for (size_t n = 0; n < graph_.nodes.size(); ++n)  // a state may lie as any of its readers wants it
            for (const Candidate& c : found_[n])
                for (size_t i = 0; i < c.inputs.size(); ++i)
                    if (open_state(graph_.nodes[n].inputs[i]) && !c.inputs[i].is_same())
                        add_once(domain(graph_.nodes[n].inputs[i]), c.inputs[i]);
        for (size_t n = 0; n < graph_.nodes.size(); ++n)  // an optimizer's state may lie as its parameter
            for (const Candidate& c : found_[n])
                for (const auto& [mark, group] : groups(graph_.nodes[n], c)) {
                    std::vector<Layout> all;
                    for (const int v : group)
                        if (value(v).state != kNone)
                            for (const Layout& l : domain(v)) add_once(all, l);
                    for (const int v : group)
                        if (open_state(v))
                            for (const Layout& l : all) add_once(domain(v), l);
                }
        for (size_t v = 0; v < graph_.values.size(); ++v)
            if (graph_.values[v].state != kNone && domains_[v].empty()) domains_[v] = {Layout::plain()};
    }

    // The inputs behind each mark.
    static std::map<std::string, std::vector<int>> groups(const LocalNode& node, const Candidate& candidate) {
        std::map<std::string, std::vector<int>> result;
        for (size_t i = 0; i < node.inputs.size(); ++i)
            if (candidate.inputs[i].is_same()) result[candidate.inputs[i].opaque].push_back(node.inputs[i]);
        for (const Layout& l : candidate.outputs)
            if (l.is_same()) result[l.opaque];
        return result;
    }

    // The layouts that a group may take: any in which one of its inputs may be.
    std::vector<Layout> layouts_for(const std::vector<int>& group) {
        std::vector<Layout> all;
        for (const int v : group)
            for (const Layout& l : domain(v)) add_once(all, l);
        if (all.empty()) all.push_back(Layout::plain());
        return all;
    }

    // --- Variables ----------------------------------------------------------------------------------------------------------------

    int add_variable(Variable variable, std::vector<double> seconds) {
        variables_.push_back(std::move(variable));
        choice_.variables.push_back(std::move(seconds));
        return static_cast<int>(variables_.size()) - 1;
    }
    int add_layouts(std::vector<Layout> layouts) {
        const size_t count = layouts.size();
        return add_variable({.layouts = std::move(layouts)}, std::vector<double>(count, 0));
    }

    void make_variables() {
        plain_ = add_layouts({Layout::plain()});
        std::vector<int> of_state(graph_.states.size(), kNone);
        for (size_t v = 0; v < graph_.values.size(); ++v) {
            const int state = graph_.values[v].state;
            if (state == kNone) continue;
            int& variable = of_state[static_cast<size_t>(state)];
            if (variable == kNone) variable = add_layouts(domains_[v]);
            state_variable_[v] = variable;
        }
        for (size_t n = 0; n < graph_.nodes.size(); ++n) {
            const LocalNode& node = graph_.nodes[n];
            nodes_.push_back(node.traffic ? traffic(node) : computation(node, found_[n]));
            for (size_t o = 0; o < node.outputs.size(); ++o) domain(node.outputs[o]) = made_layouts(nodes_.back(), o);
        }
    }

    // Wires are plain. A gradient is summed in the layout of its parameter, where all ranks that sum have it alike.
    NodeVariables traffic(const LocalNode& node) const {
        NodeVariables result;
        for (size_t i = 0; i < node.inputs.size(); ++i) {
            const int like = node.like.empty() ? kNone : node.like[i];
            result.inputs.push_back(like != kNone && agreed(like) ? state_variable_[static_cast<size_t>(like)] : plain_);
        }
        result.outputs = result.inputs;
        return result;
    }

    // Whether a state lies alike on all ranks: the first rank of the plan has it too, and its choice counts.
    bool agreed(int v) const {
        const StateBinding& state = graph_.states[static_cast<size_t>(graph_.values[static_cast<size_t>(v)].state)];
        const auto& grids = options_.plan->grids;
        const Rank first = grids[0].ranks[0];
        if (!grids[static_cast<size_t>(state.distribution.grid)].coordinates(first)) return false;
        if (options_.rank == first) return true;
        const auto& states = options_.share_state_with->states;
        return std::any_of(states.begin(), states.end(), [&](const StateBinding& s) { return s.spec.name == state.spec.name; });
    }

    NodeVariables computation(const LocalNode& node, const std::vector<Candidate>& candidates) {
        constexpr size_t kMost = 16;  // ways to settle the marks of a candidate
        Variable variable;
        std::vector<double> seconds;
        for (const Candidate& candidate : candidates) {
            std::vector<std::map<std::string, Layout>> ways{{}};
            for (const auto& [mark, group] : groups(node, candidate)) {
                std::vector<std::map<std::string, Layout>> more;
                for (const auto& way : ways)
                    for (const Layout& layout : layouts_for(group)) {
                        more.push_back(way);
                        more.back()[mark] = layout;
                    }
                ways = std::move(more);
                if (ways.size() > kMost) return one_by_one(node, candidates[0]);
            }
            for (const auto& way : ways) {
                Option option{.candidate = candidate};
                for (auto* list : {&option.candidate.inputs, &option.candidate.outputs})
                    for (Layout& l : *list)
                        if (l.is_same()) l = way.at(l.opaque);
                option.seconds = options_.costs->seconds(node.problem, option.candidate);
                if (dominated(variable.candidates, option)) continue;
                seconds.push_back(option.seconds);
                variable.candidates.push_back(std::move(option));
            }
        }
        return {.variable = add_variable(std::move(variable), std::move(seconds))};
    }

    // Whether another option with the same layouts is as good.
    static bool dominated(const std::vector<Option>& options, const Option& option) {
        return std::any_of(options.begin(), options.end(), [&](const Option& o) {
            return o.seconds <= option.seconds && o.candidate.inputs == option.candidate.inputs &&
                   o.candidate.outputs == option.candidate.outputs && o.candidate.input_types == option.candidate.input_types;
        });
    }

    // The updates of many parameters in one: each goes its own way.
    NodeVariables one_by_one(const LocalNode& node, const Candidate& candidate) {
        NodeVariables result{.only = candidate};
        for (const auto& [mark, group] : groups(node, candidate)) result.of_mark[mark] = add_layouts(layouts_for(group));
        return result;
    }

    std::vector<Layout> made_layouts(const NodeVariables& node, size_t output) {
        const auto [variable, layouts] = operand(node, output, true);
        std::vector<Layout> list;
        for (const Layout& l : layouts) add_once(list, l);
        return list;
    }

    struct OperandLayouts {
        int variable;
        std::vector<Layout> layouts;  // by its option
    };
    OperandLayouts operand(const NodeVariables& node, size_t i, bool output) const {
        if (node.variable != kNone) {
            OperandLayouts result{.variable = node.variable};
            for (const Option& o : variables_[static_cast<size_t>(node.variable)].candidates)
                result.layouts.push_back(output ? o.candidate.outputs[i] : o.candidate.inputs[i]);
            return result;
        }
        if (!node.only) {
            const int variable = output ? node.outputs[i] : node.inputs[i];
            return {variable, variables_[static_cast<size_t>(variable)].layouts};
        }
        const Layout& own = output ? node.only->outputs[i] : node.only->inputs[i];
        if (!own.is_same()) return {plain_, {own}};
        const int variable = node.of_mark.at(own.opaque);
        return {variable, variables_[static_cast<size_t>(variable)].layouts};
    }

    // --- Who makes and uses what in which form ---------------------------------------------------------------------------------------

    // The forms of a value: layouts and types, numbered as they turn up.
    struct Forms {
        std::vector<std::pair<Layout, DType>> list;
        int number(const Layout& layout, DType type) {
            const auto found = std::find(list.begin(), list.end(), std::pair(layout, type));
            if (found != list.end()) return static_cast<int>(found - list.begin());
            list.emplace_back(layout, type);
            return static_cast<int>(list.size()) - 1;
        }
        ChoiceGraph::Use use(const OperandLayouts& operand, const std::vector<DType>& types) {
            ChoiceGraph::Use use{.variable = operand.variable};
            for (size_t o = 0; o < operand.layouts.size(); ++o)
                use.forms.push_back(number(operand.layouts[o], types.size() > 1 ? types[o] : types[0]));
            return use;
        }
    };

    // The types in which a node wants an input, by option.
    std::vector<DType> wanted_types(const NodeVariables& node, size_t i, int v) const {
        const auto of = [&](const Candidate& c) { return c.input_types.empty() ? desc(v).dtype : c.input_types[i]; };
        if (node.only) return {of(*node.only)};
        if (node.variable == kNone) return {desc(v).dtype};
        std::vector<DType> types;
        for (const Option& o : variables_[static_cast<size_t>(node.variable)].candidates) types.push_back(of(o.candidate));
        return types;
    }

    void link() {
        std::vector<Forms> forms(graph_.values.size());
        std::vector<std::optional<ChoiceGraph::Use>> made(graph_.values.size());
        std::vector<std::vector<ChoiceGraph::Use>> uses(graph_.values.size());
        for (size_t v = 0; v < graph_.values.size(); ++v) {
            const int variable = graph_.values[v].state != kNone ? state_variable_[v] : graph_.values[v].input ? plain_ : kNone;
            if (variable != kNone)
                made[v] = forms[v].use({variable, variables_[static_cast<size_t>(variable)].layouts}, {graph_.values[v].desc.dtype});
        }
        for (size_t n = 0; n < graph_.nodes.size(); ++n) {
            const LocalNode& node = graph_.nodes[n];
            for (size_t i = 0; i < node.inputs.size(); ++i) {
                const auto v = static_cast<size_t>(node.inputs[i]);
                uses[v].push_back(forms[v].use(operand(nodes_[n], i, false), wanted_types(nodes_[n], i, node.inputs[i])));
            }
            for (size_t o = 0; o < node.outputs.size(); ++o) {
                const auto v = static_cast<size_t>(node.outputs[o]);
                made[v] = forms[v].use(operand(nodes_[n], o, true), {desc(node.outputs[o]).dtype});
            }
        }
        for (const LocalStore& store : graph_.stores) {  // a next version that lies otherwise than the state is copied into it
            const auto v = static_cast<size_t>(store.value), s = static_cast<size_t>(state_variable_[static_cast<size_t>(store.state)]);
            uses[v].push_back(forms[v].use({static_cast<int>(s), variables_[s].layouts}, {desc(store.value).dtype}));
        }
        for (size_t v = 0; v < graph_.values.size(); ++v) {
            if (!made[v] || uses[v].empty()) continue;
            ChoiceGraph::Value entry{
                .made = std::move(*made[v]), .uses = std::move(uses[v]), .form_count = static_cast<int>(forms[v].list.size())};
            for (const auto& from : forms[v].list)
                for (const auto& to : forms[v].list) entry.copies.push_back(copy_seconds(graph_.values[v].desc.shape, from, to));
            choice_.values.push_back(std::move(entry));
        }
    }

    using Form = std::pair<Layout, DType>;
    double copy_seconds(const Shape& shape, const Form& from, const Form& to) const {
        if (from == to || (from.second == to.second && equivalent(shape, from.first, to.first))) return 0;
        return options_.costs->copy_seconds(
            {.shape = shape, .from_type = from.second, .to_type = to.second, .from = from.first, .to = to.first});
    }

    // --- The first choice: node by node in order, each with what its inputs cost --------------------------------------------------------------

    std::vector<int> greedy() const {
        std::vector<int> chosen(variables_.size(), kNone);
        chosen[static_cast<size_t>(plain_)] = 0;
        // The uses of each variable, with the value.
        std::vector<std::vector<std::pair<const ChoiceGraph::Value*, const ChoiceGraph::Use*>>> uses(variables_.size());
        for (const auto& v : choice_.values)
            for (const auto& use : v.uses) uses[static_cast<size_t>(use.variable)].emplace_back(&v, &use);
        const auto take_best = [&](int variable) {
            const auto at = static_cast<size_t>(variable);
            if (chosen[at] != kNone) return;
            double least = std::numeric_limits<double>::infinity();
            chosen[at] = 0;
            for (size_t o = 0; o < choice_.variables[at].size(); ++o) {
                double seconds = choice_.variables[at][o];
                for (const auto& [v, use] : uses[at]) {
                    const int maker = chosen[static_cast<size_t>(v->made.variable)];
                    if (v->made.variable == variable || maker == kNone) continue;
                    seconds += v->copies[static_cast<size_t>(v->made.forms[static_cast<size_t>(maker)] * v->form_count + use->forms[o])];
                }
                if (seconds >= least) continue;
                least = seconds;
                chosen[at] = static_cast<int>(o);
            }
        };
        for (size_t n = 0; n < graph_.nodes.size(); ++n) {
            if (nodes_[n].variable != kNone) take_best(nodes_[n].variable);
            adopt(n, chosen);
            for (const auto& [mark, variable] : nodes_[n].of_mark) take_best(variable);
        }
        for (size_t v = 0; v < variables_.size(); ++v) take_best(static_cast<int>(v));
        return chosen;
    }

    // A state that is read for the first time lies as its reader wants it.
    void adopt(size_t n, std::vector<int>& chosen) const {
        const LocalNode& node = graph_.nodes[n];
        for (size_t i = 0; i < node.inputs.size(); ++i) {
            const int state = state_variable_[static_cast<size_t>(node.inputs[i])];
            if (state == kNone || chosen[static_cast<size_t>(state)] != kNone) continue;
            const auto [reader, layouts] = operand(nodes_[n], i, false);
            const int option = chosen[static_cast<size_t>(reader)];
            if (option == kNone) continue;
            const auto& known = variables_[static_cast<size_t>(state)].layouts;
            const auto found = std::find(known.begin(), known.end(), layouts[static_cast<size_t>(option)]);
            if (found != known.end()) chosen[static_cast<size_t>(state)] = static_cast<int>(found - known.begin());
        }
    }

    // --- The result: candidates at the nodes, layouts at the values, copies between --------------------------------------------------------

    const Layout& layout_of(int variable, const std::vector<int>& chosen) const {
        return variables_[static_cast<size_t>(variable)].layouts[static_cast<size_t>(chosen[static_cast<size_t>(variable)])];
    }

    Candidate candidate_of(const LocalNode& node, const NodeVariables& variables, const std::vector<int>& chosen) {
        if (variables.variable != kNone) {
            const auto at = static_cast<size_t>(variables.variable);
            return variables_[at].candidates[static_cast<size_t>(chosen[at])].candidate;
        }
        if (variables.only) {
            Candidate candidate = *variables.only;
            for (auto* list : {&candidate.inputs, &candidate.outputs})
                for (Layout& l : *list)
                    if (l.is_same()) l = layout_of(variables.of_mark.at(l.opaque), chosen);
            return candidate;
        }
        Candidate candidate{.algorithm = "traffic"};
        for (const int v : variables.inputs) candidate.inputs.push_back(layout_of(v, chosen));
        for (const int v : variables.outputs) candidate.outputs.push_back(layout_of(v, chosen));
        const auto* collective = std::get_if<Collective>(&*node.traffic);
        const bool sums = collective && collective->kind == Collective::Kind::AllReduce;
        if (sums && node.inputs.size() == 1) candidate.in_place = {{0, 0}};  // several are gathered in one place
        return candidate;
    }

    void settle(const std::vector<int>& chosen) {
        for (size_t v = 0; v < state_variable_.size(); ++v)
            if (state_variable_[v] != kNone) graph_.values[v].layout = layout_of(state_variable_[v], chosen);
        std::vector<LocalNode> nodes = std::move(graph_.nodes);
        graph_.nodes.clear();
        for (size_t n = 0; n < nodes.size(); ++n) {
            LocalNode& node = nodes[n];
            node.candidate = candidate_of(node, nodes_[n], chosen);
            for (size_t i = 0; i < node.inputs.size(); ++i) {
                const DType type = node.candidate.input_types.empty() ? desc(node.inputs[i]).dtype : node.candidate.input_types[i];
                node.inputs[i] = as_wanted(node.inputs[i], node.candidate.inputs[i], type, node);
            }
            for (size_t i = 0; i < node.outputs.size(); ++i) value(node.outputs[i]).layout = node.candidate.outputs[i];
            graph_.nodes.push_back(std::move(node));
        }
        resolve_stores();
        for (const LocalValue& val : graph_.values)
            if (val.state != kNone) graph_.states[static_cast<size_t>(val.state)].layout = val.layout;
    }

    // The value in the wanted layout and type: itself, or a copy that later readers share (a mere view where the memory is alike).
    int as_wanted(int v, const Layout& wanted, DType type, const LocalNode& reader) {
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
    const ChooseOptions& options_;
    std::vector<std::vector<Candidate>> found_;  // of each node
    std::vector<std::vector<Layout>> domains_;   // of each value: the layouts in which it may be made
    std::vector<Variable> variables_;            // as in choice_
    std::vector<NodeVariables> nodes_;
    std::vector<int> state_variable_;  // of each value that is a state
    int plain_ = kNone;                // the variable that has no choice
    ChoiceGraph choice_;
    std::map<int, std::vector<int>> copies_;
};

}  // namespace

void choose(LocalGraph& graph, const Target& target, const ChooseOptions& options) { Choosing(graph, target, options).run(); }

}  // namespace convoy
