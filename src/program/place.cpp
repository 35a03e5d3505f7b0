// Placing a graph. Node by node, every axis of the grid splits one of the op's labels or does nothing (axis_choice.h); what its operands then need is
// fetched by moves (forms.h), and what it makes settles where the plan, or the value it is the gradient of, says.
#include <algorithm>
#include <map>
#include <optional>

#include "program/axis_choice.h"
#include "program/localise.h"

namespace convoy {

namespace {

using Kind = AxisPlacement::Kind;

class Placing {
  public:
    Placing(const Graph& graph, const Plan& plan) : graph_(graph), plan_(plan), forms_(graph, plan, result_), axes_(graph, forms_) {}

    // Puts the states that live nodes read where they already lie.
    void keep(const StatePlaces& states, const std::vector<bool>& live) {
        for (size_t n = 0; n < graph_.nodes().size(); ++n) {
            if (!live[n]) continue;
            for (const ValueId v : graph_.nodes()[n].inputs) {
                if (!is_state(graph_, v) || forms_.placed(v)) continue;
                const auto at = states.find(spec(v).name);
                if (at == states.end()) continue;
                const Grid& grid = plan_.grids[static_cast<size_t>(at->second.grid)];
                forms_.add({v, at->second, owned_boxes(at->second, grid, graph_.shape(v)), {}});
            }
        }
    }

    PlacedGraph run(const std::vector<bool>& live) {
        for (size_t n = 0; n < graph_.nodes().size(); ++n)
            if (live[n]) add(static_cast<NodeId>(n));
        for (const auto& [name, value] : graph_.outputs()) result_.outputs.push_back({name, forms_.complete(value)});
        for (const Store& store : graph_.stores()) {
            const int state = forms_.home(store.state);
            const PlacedValue as = forms_.at(state);  // a copy, since fetching adds values
            const Forms::Reader reader{graph_.value(store.state).name, Phase::Update, 0};
            result_.stores.push_back({state, forms_.fetch(store.value, as.distribution, as.boxes, reader)});
        }
        for (const auto& [name, value] : graph_.inputs())
            if (!forms_.placed(value)) forms_.complete(value);
        for (const auto& [name, value] : graph_.inputs())
            for (const int f : forms_.of(value)) result_.inputs.push_back({name, f});
        return std::move(result_);
    }

  private:
    const StateSpec& spec(ValueId v) const { return graph_.states()[static_cast<size_t>(graph_.value(v).state)]; }

    // Updates lie where their parameter does; everything else where its layer does.
    const LayerPlan& entry_of(const Node& node) const {
        if (node.phase == Phase::Update)
            for (const ValueId v : node.inputs)
                if (is_state(graph_, v) && owner_.count(v)) return layer_plan(plan_, owner_.at(v));
        return layer_plan(plan_, node.layer);
    }

    void add(NodeId id) {
        const Node& node = graph_.node(id);
        const LayerPlan& entry = entry_of(node);
        PlacingOp op{node, entry, entry.grid, plan_.grids[static_cast<size_t>(entry.grid)], {}, {}, {}, {}};
        for (const ValueId v : node.inputs) {
            op.in_types.push_back(graph_.value(v).type);
            if (is_state(graph_, v)) owner_.emplace(v, node.layer);
        }
        for (const ValueId v : node.outputs) op.out_types.push_back(graph_.value(v).type);
        op.signature = signature_of(node.op, op.in_types, op.out_types);
        place_slots(op);
        for (int a = 0; a < static_cast<int>(op.grid.axes.size()); ++a) op.choice.push_back(axes_.choose(op, a));
        axes_.remember(op);
        emit(op, id);
        // The loss is looked at before any update is made, so its sum does not wait for the end.
        for (const NamedValue& output : graph_.outputs())
            if (node.phase == Phase::Forward && graph_.value(output.value).producer == id) forms_.complete(output.value);
    }

    // --- Distributions of the operands ---

    std::vector<int> axes_of(const PlacingOp& op, int label) const {
        std::vector<int> axes;
        for (size_t a = 0; a < op.choice.size(); ++a)
            if (op.choice[a] == label) axes.push_back(static_cast<int>(a));
        return axes;
    }

    // How a label is cut: as an input that is cut by the same axes already is, or evenly.
    DimSplit cut(const PlacingOp& op, int label) const {
        const std::vector<int> axes = axes_of(op, label);
        const auto as = [&](ValueId v, const DimRoles& roles) -> std::optional<DimSplit> {
            const int dim = dim_of(roles, label);
            if (dim == kNone || roles[static_cast<size_t>(dim)].derived || !forms_.placed(v) || is_given(graph_, v)) return std::nullopt;
            const Distribution& d = forms_.lies(v);
            if (d.grid != op.grid_id) return std::nullopt;
            for (const DimSplit& s : d.splits) {
                if (s.dim != dim || !std::is_permutation(s.axes.begin(), s.axes.end(), axes.begin(), axes.end())) continue;
                DimSplit units{label, s.axes, s.cuts};
                for (int64_t& c : units.cuts) {
                    if (c % roles[static_cast<size_t>(dim)].scale != 0) return std::nullopt;
                    c /= roles[static_cast<size_t>(dim)].scale;
                }
                return units;
            }
            return std::nullopt;
        };
        for (size_t i = 0; i < op.node.inputs.size(); ++i)
            if (auto split = as(op.node.inputs[i], op.signature.inputs[i])) return *split;
        for (size_t o = 0; o < op.node.outputs.size(); ++o) {
            const ValueId of = graph_.value(op.node.outputs[o]).gradient_of;
            if (of != kNone)
                if (auto split = as(of, op.signature.outputs[o])) return *split;
        }
        int parts = 1;
        for (const int a : axes) parts *= op.grid.axes[static_cast<size_t>(a)].size;
        return {label, axes, even_cuts(op.signature.labels[static_cast<size_t>(label)].length, parts)};
    }

    Distribution distribute(const PlacingOp& op, const DimRoles& roles, const std::map<int, DimSplit>& cuts, bool output) const {
        Distribution d{.grid = op.grid_id};
        for (int dim = 0; dim < static_cast<int>(roles.size()); ++dim) {
            const DimRole& role = roles[static_cast<size_t>(dim)];
            const auto at = cuts.find(role.label);
            if (at == cuts.end()) continue;
            DimSplit split{dim, at->second.axes, at->second.cuts};
            for (int64_t& c : split.cuts) c *= role.scale;
            d.splits.push_back(std::move(split));
        }
        for (int a = 0; a < static_cast<int>(op.choice.size()); ++a) {
            const AxisPlacement p =
                output ? output_as(roles, op.choice[static_cast<size_t>(a)]) : input_as(roles, op.choice[static_cast<size_t>(a)]);
            if (p.kind == Kind::Partial) d.partial.push_back(a);
        }
        return d;
    }

    // What is read along derived dims is not cut like the label; as a distribution it is cut evenly, which is how values usually lie.
    void cut_derived(const PlacingOp& op, const DimRoles& roles, const Shape& shape, Distribution& d) const {
        for (DimSplit& s : d.splits)
            if (roles[static_cast<size_t>(s.dim)].derived) s = even_split(op.grid, shape, s.dim, s.axes);
    }

    // What every rank reads and makes. Without a cut that is the same for all.
    struct OperandBoxes {
        std::vector<Boxes> in, out;
    };
    OperandBoxes local_boxes(const PlacingOp& op, const std::vector<Distribution>& in, const std::vector<Distribution>& out) const {
        const auto whole = [](const Distribution& d) { return d.splits.empty(); };
        const bool same = std::all_of(in.begin(), in.end(), whole) && std::all_of(out.begin(), out.end(), whole);
        std::vector<std::vector<Box>> reads(in.size()), makes(out.size());
        for (const Rank rank : op.grid.ranks) {
            std::vector<Box> inputs, outputs;
            for (size_t i = 0; i < in.size(); ++i) inputs.push_back(owned_box(in[i], op.grid, op.in_types[i].shape, rank));
            for (size_t o = 0; o < out.size(); ++o) outputs.push_back(owned_box(out[o], op.grid, op.out_types[o].shape, rank));
            const LocalOp local = localise(op.node.op, op.in_types, op.out_types, inputs, outputs);
            for (size_t i = 0; i < in.size(); ++i) reads[i].push_back(local.inputs[i]);
            for (size_t o = 0; o < out.size(); ++o) makes[o].push_back(outputs[o]);
            if (same) break;
        }
        const auto kept = [&](std::vector<std::vector<Box>>& lists) {
            std::vector<Boxes> result;
            for (auto& list : lists) result.push_back(same ? Boxes(list[0], op.grid.ranks.size()) : Boxes(std::move(list)));
            return result;
        };
        return {kept(reads), kept(makes)};
    }

    void emit(const PlacingOp& op, NodeId id) {
        std::map<int, DimSplit> cuts;
        for (const int c : op.choice)
            if (c >= 0 && !cuts.count(c)) cuts.emplace(c, cut(op, c));
        std::vector<Distribution> in, out;
        for (size_t i = 0; i < op.node.inputs.size(); ++i) {
            in.push_back(distribute(op, op.signature.inputs[i], cuts, false));
            cut_derived(op, op.signature.inputs[i], op.in_types[i].shape, in.back());
        }
        for (const DimRoles& roles : op.signature.outputs) out.push_back(distribute(op, roles, cuts, true));

        const OperandBoxes boxes = local_boxes(op, in, out);
        PlacedNode placed{.node = id,
                          .layer = op.node.layer,
                          .phase = op.node.phase,
                          .micro_batch = op.node.micro_batch,
                          .global_norm = op.entry.global_norm};
        const Forms::Reader reader{op.node.layer, op.node.phase, op.node.micro_batch};
        for (size_t i = 0; i < in.size(); ++i) {
            const ValueId v = op.node.inputs[i];
            placed.inputs.push_back(op.takes_own_part(i) ? forms_.home(v) : forms_.fetch(v, in[i], boxes.in[i], reader));
        }
        for (size_t o = 0; o < out.size(); ++o) {
            PlacedValue value{op.node.outputs[o], out[o], boxes.out[o], {}};
            if (makes_statistics(op.node.op))
                for (size_t r = 0; r < boxes.in[0].size(); ++r) {
                    const int64_t cells = boxes.out[o][r].shape[1];
                    value.counts.push_back(cells == 0 ? 0 : numel(boxes.in[0][r].shape) / cells);
                }
            placed.outputs.push_back(forms_.add(std::move(value)));
        }
        result_.nodes.push_back(std::move(placed));
        for (size_t o = 0; o < out.size(); ++o) settle(op, o);
    }

    // Activations do not stay partial, and go where the plan or their value's home says at once; what waits for the whole step (losses,
    // statistics, gradients of parameters) does.
    void settle(const PlacingOp& op, size_t output) {
        const ValueId v = op.node.outputs[output];
        const Shape& shape = graph_.shape(v);
        if (makes_statistics(op.node.op) || shape.size() < 2 || op.node.phase == Phase::Update) return;
        const ValueId of = graph_.value(v).gradient_of;
        if (op.node.phase == Phase::Backward && (of == kNone || is_state(graph_, of))) return;
        Distribution to = forms_.lies(v);
        bool changes = false;
        for (int a = 0; a < static_cast<int>(op.choice.size()); ++a) {
            const AxisPlacement now = placement_on(to, a);
            AxisPlacement want = axes_.wanted(op, output, a).value_or(now.kind == Kind::Partial ? AxisPlacement{} : now);
            if (want == now || (now.kind != Kind::Partial && !forced(op))) continue;
            set(to, op.grid, shape, a, want);
            changes = true;
        }
        if (!changes) return;
        adopt_home(op, of, to);
        const Forms::Reader reader{op.node.layer, op.node.phase, op.node.micro_batch};
        const auto boxes = owned_boxes(to, op.grid, shape);
        forms_.settle(v, forms_.fetch(v, to, boxes, reader));
    }
    // Only where the plan names the output is it moved for its own sake.
    static bool forced(const PlacingOp& op) { return op.node.phase == Phase::Forward && !op.entry.output.empty(); }

    // Changes what one axis does to a distribution. A new cut lies inside those there are.
    static void set(Distribution& d, const Grid& grid, const Shape& shape, int axis, const AxisPlacement& want) {
        std::erase(d.partial, axis);
        for (DimSplit& s : d.splits)
            if (std::erase(s.axes, axis) > 0 && !s.axes.empty()) s = even_split(grid, shape, s.dim, s.axes);
        std::erase_if(d.splits, [](const DimSplit& s) { return s.axes.empty(); });
        if (want.kind != Kind::Split) return;
        for (DimSplit& s : d.splits)
            if (s.dim == want.dim) {
                std::vector<int> axes = s.axes;
                axes.push_back(axis);
                s = even_split(grid, shape, s.dim, axes);
                return;
            }
        d.splits.push_back(even_split(grid, shape, want.dim, {axis}));
    }

    // A gradient whose axes do the same as its value's takes the value's own cuts and order.
    void adopt_home(const PlacingOp& op, ValueId of, Distribution& to) const {
        if (of == kNone || !forms_.placed(of)) return;
        const Distribution& d = forms_.lies(of);
        if (d.grid != op.grid_id || !d.partial.empty() || !to.partial.empty()) return;
        for (int a = 0; a < static_cast<int>(op.grid.axes.size()); ++a)
            if (placement_on(d, a) != placement_on(to, a)) return;
        to = d;
    }

    // --- States ---

    // Optimizer state lies as its parameter, or is cut along the axis that the plan names for it.
    void place_slots(const PlacingOp& op) {
        if (op.node.phase != Phase::Update) return;
        for (const ValueId v : op.node.inputs) {
            if (!is_state(graph_, v) || forms_.placed(v) || spec(v).kind != StateKind::Slot) continue;
            const ValueId parameter = op.node.inputs[0];
            if (!forms_.placed(parameter) || graph_.shape(parameter) != graph_.shape(v)) continue;
            Distribution d = forms_.lies(parameter);
            if (op.entry.state_axis >= 0 && d.grid == op.grid_id && placement_on(d, op.entry.state_axis).kind == Kind::Replicate)
                shard(d, op.grid, graph_.shape(v), op.entry.state_axis);
            const auto boxes = owned_boxes(d, op.grid, graph_.shape(v));
            forms_.add({v, d, boxes, {}});
        }
    }
    // The first dim with a row for every rank, or the longest.
    static void shard(Distribution& d, const Grid& grid, const Shape& shape, int axis) {
        int dim = 0;
        for (int i = 1; i < shape.size(); ++i)
            if (shape[dim] < grid.axes[static_cast<size_t>(axis)].size && shape[i] > shape[dim]) dim = i;
        set(d, grid, shape, axis, {Kind::Split, dim});
    }

    const Graph& graph_;
    const Plan& plan_;
    PlacedGraph result_;
    Forms forms_;
    AxisChoice axes_;
    std::map<ValueId, std::string> owner_;  // state -> the layer that first read it
};

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

}  // namespace

PlacedGraph place(const Graph& graph, const Plan& plan, const StatePlaces& states) {
    for (const Grid& grid : plan.grids) validate(grid);
    Placing placing(graph, plan);
    const std::vector<bool> live = live_nodes(graph);
    placing.keep(states, live);
    return placing.run(live);
}

}  // namespace convoy
