// Placing a graph. Node by node and axis by axis, an op either splits one of its labels or does nothing; what its operands then need is fetched
// by moves. Convolutions and fully connected layers do what the plan says, and their gradients split the same label; everything else takes what
// costs least traffic, which means that it follows its inputs.
#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "base/error.h"
#include "program/localise.h"
#include "program/moves.h"
#include "program/placed_graph.h"
#include "program/signature.h"

namespace convoy {

namespace {

using Kind = AxisPlacement::Kind;

constexpr int kReplicated = -1;   // the axis does nothing to the op
constexpr int kPassPartial = -2;  // sums not yet reduced pass through

// Whether the plan speaks about the op itself: those with weights in the sense of a plan.
bool is_main(const Op& op) {
    return std::holds_alternative<ConvOp>(op) || std::holds_alternative<ConvGradInputOp>(op) ||
           std::holds_alternative<ConvGradWeightOp>(op) || std::holds_alternative<LinearOp>(op) ||
           std::holds_alternative<LinearGradInputOp>(op) || std::holds_alternative<LinearGradWeightOp>(op) ||
           std::holds_alternative<LocalConvOp>(op) || std::holds_alternative<LocalConvGradInputOp>(op) ||
           std::holds_alternative<LocalConvGradWeightOp>(op);
}

bool makes_statistics(const Op& op) { return std::holds_alternative<BatchStatsOp>(op) || std::holds_alternative<CellStatsOp>(op); }

// Reads batch statistics (and, backwards, their gradients) that may be each rank's own.
bool norm_of_a_part(const Op& op) {
    return std::holds_alternative<BatchNormalizeOp>(op) || std::holds_alternative<BatchNormGradSumsOp>(op) ||
           std::holds_alternative<BatchNormGradInputOp>(op);
}

AxisPlacement placement_on(const Distribution& d, int axis) {
    for (const DimSplit& s : d.splits)
        if (std::find(s.axes.begin(), s.axes.end(), axis) != s.axes.end()) return {Kind::Split, s.dim};
    if (std::find(d.partial.begin(), d.partial.end(), axis) != d.partial.end()) return {Kind::Partial, 0};
    return {};
}

std::string text_of(const AxisPlacement& p) {
    return p.kind == Kind::Split ? fmt::format("split {}", p.dim) : p.kind == Kind::Partial ? "partial" : "replicate";
}

class Placing {
  public:
    Placing(const Graph& graph, const Plan& plan) : graph_(graph), plan_(plan), forms_(graph.values().size()) {
        for (const Store& store : graph.stores()) stored_as_[store.value] = store.state;
    }

    // Puts the states that live nodes read where they already lie.
    void keep(const StatePlaces& states, const std::vector<bool>& live) {
        for (size_t n = 0; n < graph_.nodes().size(); ++n) {
            if (!live[n]) continue;
            for (const ValueId v : graph_.nodes()[n].inputs) {
                if (!is_state(v) || placed(v)) continue;
                const auto at = states.find(spec(v).name);
                if (at == states.end()) continue;
                const Grid& grid = plan_.grids[static_cast<size_t>(at->second.grid)];
                add_form({v, at->second, owned_boxes(at->second, grid, graph_.shape(v)), {}});
            }
        }
    }

    PlacedGraph run(const std::vector<bool>& live) {
        for (size_t n = 0; n < graph_.nodes().size(); ++n)
            if (live[n]) add(static_cast<NodeId>(n));
        for (const auto& [name, value] : graph_.outputs()) result_.outputs.push_back({name, complete(value)});
        for (const Store& store : graph_.stores()) {
            const PlacedValue& state = form(home(store.state));
            const Reader reader{graph_.value(store.state).name, Phase::Update, 0};
            const Distribution distribution = state.distribution;
            const auto boxes = state.boxes;
            result_.stores.push_back({home(store.state), fetch(store.value, distribution, boxes, reader)});
        }
        for (const auto& [name, value] : graph_.inputs())
            if (!placed(value)) complete(value);
        for (const auto& [name, value] : graph_.inputs())
            for (const int f : forms_[static_cast<size_t>(value)]) result_.inputs.push_back({name, f});
        return std::move(result_);
    }

  private:
    struct Reader {
        std::string layer;
        Phase phase;
        int micro_batch;
    };

    // One node while it is being placed.
    struct Work {
        const Node& node;
        const LayerPlan& entry;
        int grid_id;
        const Grid& grid;
        std::vector<ValueType> in_types, out_types;
        Signature signature;
        std::vector<int> choice;  // by axis: a label, kReplicated or kPassPartial
    };

    const PlacedValue& form(int f) const { return result_.values[static_cast<size_t>(f)]; }
    bool placed(ValueId v) const { return !forms_[static_cast<size_t>(v)].empty(); }
    // The first form of a value: as it was made, or as the state lies.
    int home(ValueId v) const {
        CONVOY_CHECK(placed(v), "\"{}\" has no place yet", graph_.value(v).name);
        return forms_[static_cast<size_t>(v)][0];
    }
    bool is_given(ValueId v) const { return graph_.value(v).producer == kNone && graph_.value(v).state == kNone; }
    bool is_state(ValueId v) const { return graph_.value(v).state != kNone; }
    const StateSpec& spec(ValueId v) const { return graph_.states()[static_cast<size_t>(graph_.value(v).state)]; }

    int add_form(PlacedValue value) {
        const ValueId v = value.value;
        result_.values.push_back(std::move(value));
        forms_[static_cast<size_t>(v)].push_back(static_cast<int>(result_.values.size()) - 1);
        return forms_[static_cast<size_t>(v)].back();
    }

    // Updates lie where their parameter does; everything else where its layer does.
    const LayerPlan& entry_of(const Node& node) const {
        if (node.phase == Phase::Update)
            for (const ValueId v : node.inputs)
                if (is_state(v) && owner_.count(v)) return layer_plan(plan_, owner_.at(v));
        return layer_plan(plan_, node.layer);
    }

    void add(NodeId id) {
        const Node& node = graph_.node(id);
        const LayerPlan& entry = entry_of(node);
        Work w{node, entry, entry.grid, plan_.grids[static_cast<size_t>(entry.grid)], {}, {}, {}, {}};
        for (const ValueId v : node.inputs) {
            w.in_types.push_back(graph_.value(v).type);
            if (is_state(v)) owner_.emplace(v, node.layer);
        }
        for (const ValueId v : node.outputs) w.out_types.push_back(graph_.value(v).type);
        w.signature = signature_of(node.op, w.in_types, w.out_types);
        place_slots(w);
        for (int a = 0; a < static_cast<int>(w.grid.axes.size()); ++a) w.choice.push_back(choose(w, a));
        if (is_main(node.op) && node.phase == Phase::Forward) {
            auto& labels = main_[{node.layer, node.micro_batch}];
            labels.clear();
            for (const int c : w.choice) labels.push_back(c >= 0 ? w.signature.labels[static_cast<size_t>(c)].name : "");
        }
        emit(w, id);
    }

    // --- What an axis does ---

    int choose(const Work& w, int axis) const {
        if (w.grid.axes[static_cast<size_t>(axis)].size == 1) return kReplicated;
        if (is_main(w.node.op)) {
            if (w.node.phase == Phase::Backward) {
                const auto forward = main_.find({w.node.layer, w.node.micro_batch});
                if (forward != main_.end()) return label_named(w, forward->second[static_cast<size_t>(axis)]);
            } else if (!w.entry.weight.empty() || !w.entry.input.empty()) {
                return choice_of_plan(w, axis);
            }
        }
        return cheapest(w, axis);
    }

    int label_named(const Work& w, const std::string& name) const {
        for (size_t l = 0; l < w.signature.labels.size(); ++l)
            if (w.signature.labels[l].name == name) return static_cast<int>(l);
        return kReplicated;
    }

    // The operand that has a plan's weights.
    static size_t weight_operand(const Op&) { return 1; }

    // What the plan says of a layer's input and weights names the label. With the weights cut by filters the input is gathered on the way,
    // however it is stored.
    int choice_of_plan(const Work& w, int axis) const {
        const auto at = [&](const Placement& p) { return p.empty() ? AxisPlacement{} : p[static_cast<size_t>(axis)]; };
        const AxisPlacement x = at(w.entry.input), weight = at(w.entry.weight);
        std::string possible;
        for (size_t l = 0; l < w.signature.labels.size(); ++l) {
            const int label = static_cast<int>(l);
            const AxisPlacement lx = read_as(w.signature.inputs[0], label);
            const AxisPlacement lw = read_as(w.signature.inputs[weight_operand(w.node.op)], label);
            if (lw == weight && (lx == x || (lx.kind == Kind::Replicate && weight.kind == Kind::Split))) return label;
            possible += fmt::format("{}input {}, weight {}", possible.empty() ? "" : "; ", text_of(lx), text_of(lw));
        }
        if (x.kind == Kind::Replicate && weight.kind == Kind::Replicate) return kReplicated;
        fail(
            "layer \"{}\" ({}) cannot have its input as \"{}\" and its weight as \"{}\" along axis \"{}\"; what works: {}; or both "
            "\"replicate\"",
            w.node.layer, convoy::text_of(w.node.op), text_of(x), text_of(weight), w.grid.axes[static_cast<size_t>(axis)].name, possible);
    }

    static AxisPlacement read_as(const DimRoles& roles, int label) {
        const int dim = label >= 0 ? dim_of(roles, label) : kNone;
        return dim == kNone ? AxisPlacement{} : AxisPlacement{Kind::Split, dim};
    }
    static AxisPlacement input_as(const DimRoles& roles, int choice) {
        return choice == kPassPartial ? AxisPlacement{Kind::Partial, 0} : read_as(roles, choice);
    }
    static AxisPlacement output_as(const DimRoles& roles, int choice) {
        if (choice == kReplicated) return {};
        const int dim = choice >= 0 ? dim_of(roles, choice) : kNone;
        return dim == kNone ? AxisPlacement{Kind::Partial, 0} : AxisPlacement{Kind::Split, dim};
    }

    int cheapest(const Work& w, int axis) const {
        std::vector<int> options{kReplicated};
        if (w.signature.linear) options.push_back(kPassPartial);
        for (size_t l = 0; l < w.signature.labels.size(); ++l) options.push_back(static_cast<int>(l));
        double best = std::numeric_limits<double>::infinity();
        int chosen = kReplicated;
        for (const int option : options) {
            const double c = cost(w, axis, option);
            if (c < best) {
                best = c;
                chosen = option;
            }
        }
        return chosen;
    }

    // Bytes that travel per rank, roughly; smaller than a byte: preferences between equals.
    double cost(const Work& w, int axis, int choice) const {
        double total = 0;
        const double p = w.grid.axes[static_cast<size_t>(axis)].size;
        for (size_t i = 0; i < w.node.inputs.size(); ++i) {
            const ValueId v = w.node.inputs[i];
            const AxisPlacement need = input_as(w.signature.inputs[i], choice);
            if (is_given(v) || !placed(v)) {
                // Free to lie as is best: along an axis that is named after the label, cut.
                const bool named = choice >= 0 && need.kind == Kind::Split &&
                                   w.signature.labels[static_cast<size_t>(choice)].name == w.grid.axes[static_cast<size_t>(axis)].name;
                total += need.kind == Kind::Partial ? 1e30 : named ? -0.5 : need.kind == Kind::Split ? 0.25 : 0;
                continue;
            }
            if (!w.entry.global_norm && norm_of_a_part(w.node.op) && takes_part(w, i)) continue;
            double least = 1e30;
            for (const int f : forms_[static_cast<size_t>(v)]) {
                if (form(f).distribution.grid != w.grid_id) continue;
                const bool derived = need.kind == Kind::Split && w.signature.inputs[i][static_cast<size_t>(need.dim)].derived;
                const AxisPlacement from = placement_on(form(f).distribution, axis);
                // Statistics are merged everywhere, whatever part is needed.
                const bool merged = from.kind == Kind::Partial && of_statistics(v);
                least = std::min(least, travel(from, merged ? AxisPlacement{} : need, bytes(v), p, derived));
            }
            if (least >= 1e30) least = need.kind == Kind::Partial ? 1e30 : bytes(v) / (need.kind == Kind::Split ? p : 1);
            total += least;
        }
        for (size_t o = 0; o < w.node.outputs.size(); ++o) {
            const AxisPlacement made = output_as(w.signature.outputs[o], choice);
            if (const auto want = wanted(w, o, axis)) {
                total += made == *want ? 0 : travel(made, *want, bytes(w.node.outputs[o]), p, false) + 0.125;
            } else if (made.kind == Kind::Split && choice >= 0) {
                total += 0.0625;
            }
        }
        return total;
    }

    bool of_statistics(ValueId v) const {
        const NodeId producer = graph_.value(v).producer;
        return producer != kNone && makes_statistics(graph_.node(producer).op);
    }
    double bytes(ValueId v) const { return 4.0 * static_cast<double>(numel(graph_.shape(v))); }

    static double travel(const AxisPlacement& from, const AxisPlacement& to, double bytes, double p, bool derived) {
        const double rest = (p - 1) / p;
        if (from == to) return derived ? 0.01 * bytes / p : 0;
        if (to.kind == Kind::Partial) return 1e30;
        if (from.kind == Kind::Partial) return (to.kind == Kind::Split ? 1 : 2) * bytes * rest;
        if (from.kind == Kind::Replicate) return 0;
        return to.kind == Kind::Split ? bytes / p * rest : bytes * rest;
    }

    // Where a result is to lie along an axis: what the plan says of the layer's output; a gradient as its value; a state's next version as the state.
    std::optional<AxisPlacement> wanted(const Work& w, size_t output, int axis) const {
        const ValueId v = w.node.outputs[output];
        if (const auto store = stored_as_.find(v); store != stored_as_.end() && placed(store->second))
            return home_on(w, store->second, axis);
        if (w.node.phase == Phase::Forward) {
            if (w.entry.output.empty() || makes_statistics(w.node.op) || graph_.shape(v).size() < 2) return std::nullopt;
            const AxisPlacement p = w.entry.output[static_cast<size_t>(axis)];
            return p.kind == Kind::Split && p.dim >= graph_.shape(v).size() ? AxisPlacement{} : p;
        }
        const ValueId of = graph_.value(v).gradient_of;
        if (of == kNone || is_state(of) || !placed(of)) return std::nullopt;
        return home_on(w, of, axis);
    }
    std::optional<AxisPlacement> home_on(const Work& w, ValueId v, int axis) const {
        const Distribution& d = form(home(v)).distribution;
        if (d.grid != w.grid_id) return std::nullopt;
        const AxisPlacement p = placement_on(d, axis);
        return p.kind == Kind::Partial ? AxisPlacement{} : p;
    }

    // Batch norm of each rank's own part takes statistics, and the sums behind dx, as they are.
    static bool takes_part(const Work& w, size_t input) {
        if (std::holds_alternative<BatchNormalizeOp>(w.node.op)) return input == 1;
        if (std::holds_alternative<BatchNormGradSumsOp>(w.node.op)) return input == 2;
        return input == 2 || input == 4 || input == 5;
    }

    // --- Distributions of the operands ---

    std::vector<int> axes_of(const Work& w, int label) const {
        std::vector<int> axes;
        for (size_t a = 0; a < w.choice.size(); ++a)
            if (w.choice[a] == label) axes.push_back(static_cast<int>(a));
        return axes;
    }

    // How a label is cut: as an input that is cut by the same axes already is, or evenly.
    DimSplit cut(const Work& w, int label) const {
        const std::vector<int> axes = axes_of(w, label);
        const auto as = [&](ValueId v, const DimRoles& roles) -> std::optional<DimSplit> {
            const int dim = dim_of(roles, label);
            if (dim == kNone || roles[static_cast<size_t>(dim)].derived || !placed(v) || is_given(v)) return std::nullopt;
            const Distribution& d = form(home(v)).distribution;
            if (d.grid != w.grid_id) return std::nullopt;
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
        for (size_t i = 0; i < w.node.inputs.size(); ++i)
            if (auto split = as(w.node.inputs[i], w.signature.inputs[i])) return *split;
        for (size_t o = 0; o < w.node.outputs.size(); ++o) {
            const ValueId of = graph_.value(w.node.outputs[o]).gradient_of;
            if (of != kNone)
                if (auto split = as(of, w.signature.outputs[o])) return *split;
        }
        int parts = 1;
        for (const int a : axes) parts *= w.grid.axes[static_cast<size_t>(a)].size;
        return {label, axes, even_cuts(w.signature.labels[static_cast<size_t>(label)].length, parts)};
    }

    Distribution distribute(const Work& w, const DimRoles& roles, const std::map<int, DimSplit>& cuts, bool output) const {
        Distribution d{.grid = w.grid_id};
        for (int dim = 0; dim < static_cast<int>(roles.size()); ++dim) {
            const DimRole& role = roles[static_cast<size_t>(dim)];
            const auto at = cuts.find(role.label);
            if (at == cuts.end()) continue;
            DimSplit split{dim, at->second.axes, at->second.cuts};
            for (int64_t& c : split.cuts) c *= role.scale;
            d.splits.push_back(std::move(split));
        }
        for (int a = 0; a < static_cast<int>(w.choice.size()); ++a) {
            const AxisPlacement p =
                output ? output_as(roles, w.choice[static_cast<size_t>(a)]) : input_as(roles, w.choice[static_cast<size_t>(a)]);
            if (p.kind == Kind::Partial) d.partial.push_back(a);
        }
        return d;
    }

    // What is read along derived dims is not cut like the label; as a distribution it is cut evenly, which is how values usually lie.
    void cut_derived(const Work& w, const DimRoles& roles, const Shape& shape, Distribution& d) const {
        for (DimSplit& s : d.splits)
            if (roles[static_cast<size_t>(s.dim)].derived) s = even_split(w.grid, shape, s.dim, s.axes);
    }

    // What every rank reads and makes. Without a cut that is the same for all.
    void local_boxes(const Work& w, const std::vector<Distribution>& in, const std::vector<Distribution>& out, std::vector<Boxes>& in_boxes,
                     std::vector<Boxes>& out_boxes) const {
        const auto whole = [](const Distribution& d) { return d.splits.empty(); };
        const bool same = std::all_of(in.begin(), in.end(), whole) && std::all_of(out.begin(), out.end(), whole);
        std::vector<std::vector<Box>> reads(in.size()), makes(out.size());
        for (const Rank rank : w.grid.ranks) {
            std::vector<Box> inputs, outputs;
            for (size_t i = 0; i < in.size(); ++i) inputs.push_back(owned_box(in[i], w.grid, w.in_types[i].shape, rank));
            for (size_t o = 0; o < out.size(); ++o) outputs.push_back(owned_box(out[o], w.grid, w.out_types[o].shape, rank));
            const LocalOp local = localise(w.node.op, w.in_types, w.out_types, inputs, outputs);
            for (size_t i = 0; i < in.size(); ++i) reads[i].push_back(local.inputs[i]);
            for (size_t o = 0; o < out.size(); ++o) makes[o].push_back(outputs[o]);
            if (same) break;
        }
        const auto keep = [&](std::vector<std::vector<Box>>& lists, std::vector<Boxes>& result) {
            for (auto& list : lists) result.push_back(same ? Boxes(list[0], w.grid.ranks.size()) : Boxes(std::move(list)));
        };
        keep(reads, in_boxes);
        keep(makes, out_boxes);
    }

    void emit(const Work& w, NodeId id) {
        std::map<int, DimSplit> cuts;
        for (const int c : w.choice)
            if (c >= 0 && !cuts.count(c)) cuts.emplace(c, cut(w, c));
        std::vector<Distribution> in, out;
        for (size_t i = 0; i < w.node.inputs.size(); ++i) {
            in.push_back(distribute(w, w.signature.inputs[i], cuts, false));
            cut_derived(w, w.signature.inputs[i], w.in_types[i].shape, in.back());
        }
        for (const DimRoles& roles : w.signature.outputs) out.push_back(distribute(w, roles, cuts, true));

        std::vector<Boxes> in_boxes, out_boxes;
        local_boxes(w, in, out, in_boxes, out_boxes);
        PlacedNode placed{.node = id,
                          .layer = w.node.layer,
                          .phase = w.node.phase,
                          .micro_batch = w.node.micro_batch,
                          .global_norm = w.entry.global_norm};
        const Reader reader{w.node.layer, w.node.phase, w.node.micro_batch};
        for (size_t i = 0; i < in.size(); ++i) {
            const ValueId v = w.node.inputs[i];
            const bool as_it_is = !w.entry.global_norm && norm_of_a_part(w.node.op) && takes_part(w, i);
            placed.inputs.push_back(as_it_is ? home(v) : fetch(v, in[i], in_boxes[i], reader));
        }
        for (size_t o = 0; o < out.size(); ++o) {
            PlacedValue value{w.node.outputs[o], out[o], out_boxes[o], {}};
            if (makes_statistics(w.node.op))
                for (size_t r = 0; r < in_boxes[0].size(); ++r) {
                    const int64_t cells = out_boxes[o][r].shape[1];
                    value.counts.push_back(cells == 0 ? 0 : numel(in_boxes[0][r].shape) / cells);
                }
            placed.outputs.push_back(add_form(std::move(value)));
        }
        result_.nodes.push_back(std::move(placed));
        for (size_t o = 0; o < out.size(); ++o) settle(w, o);
    }

    // Activations do not stay partial, and go where the plan or their value's home says at once; what waits for the whole step (losses,
    // statistics, gradients of parameters) does.
    void settle(const Work& w, size_t output) {
        const ValueId v = w.node.outputs[output];
        const Shape& shape = graph_.shape(v);
        if (makes_statistics(w.node.op) || shape.size() < 2 || w.node.phase == Phase::Update) return;
        const ValueId of = graph_.value(v).gradient_of;
        if (w.node.phase == Phase::Backward && (of == kNone || is_state(of))) return;
        Distribution to = form(home(v)).distribution;
        bool changes = false;
        for (int a = 0; a < static_cast<int>(w.choice.size()); ++a) {
            const AxisPlacement now = placement_on(to, a);
            AxisPlacement want = wanted(w, output, a).value_or(now.kind == Kind::Partial ? AxisPlacement{} : now);
            if (want == now || (now.kind != Kind::Partial && !forced(w))) continue;
            set(to, w.grid, shape, a, want);
            changes = true;
        }
        if (!changes) return;
        adopt_home(w, of, to);
        const Reader reader{w.node.layer, w.node.phase, w.node.micro_batch};
        const auto boxes = owned_boxes(to, w.grid, shape);
        const int made = home(v), moved = fetch(v, to, boxes, reader);
        auto& forms = forms_[static_cast<size_t>(v)];  // the new place is its home from now on
        forms.erase(std::find(forms.begin(), forms.end(), moved));
        forms.insert(forms.begin(), moved);
        if (!form(made).distribution.partial.empty()) forms.erase(std::find(forms.begin(), forms.end(), made));
    }
    // Only where the plan names the output is it moved for its own sake.
    static bool forced(const Work& w) { return w.node.phase == Phase::Forward && !w.entry.output.empty(); }

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
    void adopt_home(const Work& w, ValueId of, Distribution& to) const {
        if (of == kNone || !placed(of)) return;
        const Distribution& d = form(home(of)).distribution;
        if (d.grid != w.grid_id || !d.partial.empty() || !to.partial.empty()) return;
        for (int a = 0; a < static_cast<int>(w.grid.axes.size()); ++a)
            if (placement_on(d, a) != placement_on(to, a)) return;
        to = d;
    }

    // --- States ---

    // Optimizer state lies as its parameter, or is cut along the axis that the plan names for it.
    void place_slots(const Work& w) {
        if (w.node.phase != Phase::Update) return;
        for (const ValueId v : w.node.inputs) {
            if (!is_state(v) || placed(v) || spec(v).kind != StateKind::Slot) continue;
            const ValueId parameter = w.node.inputs[0];
            if (!placed(parameter) || graph_.shape(parameter) != graph_.shape(v)) continue;
            Distribution d = form(home(parameter)).distribution;
            if (w.entry.state_axis >= 0 && d.grid == w.grid_id && placement_on(d, w.entry.state_axis).kind == Kind::Replicate)
                shard(d, w.grid, graph_.shape(v), w.entry.state_axis);
            const auto boxes = owned_boxes(d, w.grid, graph_.shape(v));
            add_form({v, d, boxes, {}});
        }
    }
    // The first dim with a row for every rank, or the longest.
    static void shard(Distribution& d, const Grid& grid, const Shape& shape, int axis) {
        int dim = 0;
        for (int i = 1; i < shape.size(); ++i)
            if (shape[dim] < grid.axes[static_cast<size_t>(axis)].size && shape[i] > shape[dim]) dim = i;
        set(d, grid, shape, axis, {Kind::Split, dim});
    }

    // --- Fetching ---

    // A form of the value in which every rank holds these boxes; made by moves when there is none.
    int fetch(ValueId v, const Distribution& d, const Boxes& boxes, const Reader& reader) {
        for (const int f : forms_[static_cast<size_t>(v)])
            if (form(f).distribution.grid == d.grid && form(f).distribution.partial == d.partial && form(f).boxes == boxes) return f;
        const bool first_state = is_state(v) && !placed(v);
        if (is_given(v) || first_state) {
            CONVOY_CHECK(d.partial.empty(), "\"{}\" cannot be given as a sum", graph_.value(v).name);
            return add_form({v, d, boxes, {}});
        }
        int from = source(v, d, boxes);
        for (const Step& step : moves({form(from), d, boxes, graph_.shape(v), of_statistics(v)}, plan_.grids)) {
            PlacedNode move{
                .move = step.move, .inputs = {from}, .layer = reader.layer, .phase = reader.phase, .micro_batch = reader.micro_batch};
            from = add_form({v, step.distribution, step.boxes, {}});
            move.outputs = {from};
            result_.nodes.push_back(std::move(move));
        }
        return from;
    }

    // The form to begin from: one that needs no traffic, one that is complete, or the home.
    int source(ValueId v, const Distribution& d, const Boxes& boxes) const {
        for (const int f : forms_[static_cast<size_t>(v)]) {
            if (form(f).distribution.grid != d.grid || form(f).distribution.partial != d.partial) continue;
            const size_t count = boxes.same() && form(f).boxes.same() ? 1 : boxes.size();
            bool all = true;
            for (size_t i = 0; i < count && all; ++i) all = contains(form(f).boxes[i], boxes[i]);
            if (all) return f;
        }
        for (const int f : forms_[static_cast<size_t>(v)])  // a sum that was completed for someone is not summed again
            if (form(f).distribution.grid == d.grid && form(f).distribution.partial.empty() && d.partial.empty() && holds_its_own(f))
                return f;
        return home(v);
    }

    // Not so for forms made for one reader: halos, and boxes that some op reads.
    bool holds_its_own(int f) const {
        const Distribution& d = form(f).distribution;
        return form(f).boxes == owned_boxes(d, plan_.grids[static_cast<size_t>(d.grid)], graph_.shape(form(f).value));
    }

    // A form without open sums.
    int complete(ValueId v) {
        if (!placed(v)) {  // an output that is an input or a state nobody reads
            const LayerPlan& entry = layer_plan(plan_, graph_.value(v).name);
            const Distribution d{.grid = entry.grid};
            const auto boxes = owned_boxes(d, plan_.grids[static_cast<size_t>(entry.grid)], graph_.shape(v));
            return fetch(v, d, boxes, {graph_.value(v).name, Phase::Forward, 0});
        }
        Distribution d = form(home(v)).distribution;
        if (d.partial.empty()) return home(v);
        d.partial.clear();
        const auto boxes = owned_boxes(d, plan_.grids[static_cast<size_t>(d.grid)], graph_.shape(v));
        const NodeId producer = graph_.value(v).producer;
        const Node& node = graph_.node(producer);
        return fetch(v, d, boxes, {node.layer, node.phase, node.micro_batch});
    }

    const Graph& graph_;
    const Plan& plan_;
    PlacedGraph result_;
    std::vector<std::vector<int>> forms_;                                   // of each value; the first is its home
    std::map<ValueId, ValueId> stored_as_;                                  // next version -> state
    std::map<ValueId, std::string> owner_;                                  // state -> the layer that first read it
    std::map<std::pair<std::string, int>, std::vector<std::string>> main_;  // layer, micro-batch -> label split by each axis, going forward
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

std::string_view name_of(Move::Kind kind) {
    static constexpr std::string_view names[] = {"slice", "all_reduce", "reduce_scatter", "all_gather", "merge_statistics", "exchange"};
    return names[static_cast<size_t>(kind)];
}

Boxes::Boxes(std::vector<Box> list) : size_(list.size()) {
    if (!list.empty() && std::all_of(list.begin(), list.end(), [&](const Box& b) { return b == list[0]; })) list.resize(1);
    list_ = std::make_shared<const std::vector<Box>>(std::move(list));
}

std::vector<Box> Boxes::list() const {
    if (size_ == 0 || list_->size() == size_) return size_ == 0 ? std::vector<Box>{} : *list_;
    return std::vector<Box>(size_, (*list_)[0]);
}

bool Boxes::operator==(const Boxes& other) const {
    return size_ == other.size_ && (list_ == other.list_ || size_ == 0 || *list_ == *other.list_);
}

Boxes owned_boxes(const Distribution& distribution, const Grid& grid, const Shape& shape) {
    if (distribution.splits.empty() && !grid.ranks.empty()) return {owned_box(distribution, grid, shape, grid.ranks[0]), grid.ranks.size()};
    std::vector<Box> boxes;
    boxes.reserve(grid.ranks.size());
    for (const Rank rank : grid.ranks) boxes.push_back(owned_box(distribution, grid, shape, rank));
    return boxes;
}

std::string listing(const PlacedGraph& placed, const Graph& graph, const Plan& plan) {
    const auto operand = [&](int f) {
        const PlacedValue& v = placed.values[static_cast<size_t>(f)];
        const Grid& grid = plan.grids[static_cast<size_t>(v.distribution.grid)];
        std::string text = fmt::format("{}({})", f, to_string(graph.shape(v.value)));
        for (const DimSplit& s : v.distribution.splits)
            for (const int a : s.axes) text += fmt::format(" {}/{}", s.dim, grid.axes[static_cast<size_t>(a)].name);
        for (const int a : v.distribution.partial) text += fmt::format(" +{}", grid.axes[static_cast<size_t>(a)].name);
        return text;
    };
    std::string text;
    for (const PlacedNode& node : placed.nodes) {
        std::vector<std::string> in, out;
        for (const int f : node.inputs) in.push_back(operand(f));
        for (const int f : node.outputs) out.push_back(operand(f));
        const std::string what = node.node == kNone ? std::string(name_of(node.move.kind)) : convoy::text_of(graph.node(node.node).op);
        text +=
            fmt::format("{:<8} {:<20} {:<24} {} -> {}\n", name_of(node.phase), node.layer, what, fmt::join(in, ", "), fmt::join(out, ", "));
    }
    return text;
}

PlacedGraph place(const Graph& graph, const Plan& plan, const StatePlaces& states) {
    for (const Grid& grid : plan.grids) validate(grid);
    Placing placing(graph, plan);
    const std::vector<bool> live = live_nodes(graph);
    placing.keep(states, live);
    return placing.run(live);
}

}  // namespace convoy
