#include "program/axis_choice.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace convoy {

namespace {

using Kind = AxisPlacement::Kind;

constexpr double kImpossible = 1e30;

template <class... Ops>
bool is_any(const Op& op) {
    return (std::holds_alternative<Ops>(op) || ...);
}

// Whether the plan speaks about the op itself: those with weights in the sense of a plan.
bool has_weights(const Op& op) {
    return is_any<ConvOp, ConvGradInputOp, ConvGradWeightOp, LinearOp, LinearGradInputOp, LinearGradWeightOp, LocalConvOp,
                  LocalConvGradInputOp, LocalConvGradWeightOp>(op);
}
constexpr size_t kInput = 0, kWeight = 1;  // of such an op, going forward

std::string text_of(const AxisPlacement& p) {
    return p.kind == Kind::Split ? fmt::format("split {}", p.dim) : p.kind == Kind::Partial ? "partial" : "replicate";
}

AxisPlacement split_by(const DimRoles& roles, int label) {
    const int dim = label >= 0 ? dim_of(roles, label) : kNone;
    return dim == kNone ? AxisPlacement{} : AxisPlacement{Kind::Split, dim};
}

int label_named(const Signature& signature, const std::string& name) {
    for (size_t l = 0; l < signature.labels.size(); ++l)
        if (signature.labels[l].name == name) return static_cast<int>(l);
    return kReplicated;
}

// Bytes that travel per rank, roughly, along an axis of p ranks. What is read along a derived dim needs a halo.
double travel(const AxisPlacement& from, const AxisPlacement& to, double bytes, double p, bool derived) {
    const double rest = (p - 1) / p;
    if (from == to) return derived ? 0.01 * bytes / p : 0;
    if (to.kind == Kind::Partial) return kImpossible;
    if (from.kind == Kind::Partial) return (to.kind == Kind::Split ? 1 : 2) * bytes * rest;
    if (from.kind == Kind::Replicate) return 0;
    return to.kind == Kind::Split ? bytes / p * rest : bytes * rest;
}

}  // namespace

bool PlacingOp::takes_own_part(size_t input) const {
    if (entry.global_norm) return false;
    if (is_any<BatchNormalizeOp>(node.op)) return input == 1;
    if (is_any<BatchNormGradSumsOp>(node.op)) return input == 2;
    if (is_any<BatchNormGradInputOp>(node.op)) return input == 2 || input == 4 || input == 5;
    return false;
}

AxisPlacement input_as(const DimRoles& roles, int choice) {
    return choice == kPassPartial ? AxisPlacement{Kind::Partial, 0} : split_by(roles, choice);
}

AxisPlacement output_as(const DimRoles& roles, int choice) {
    if (choice == kReplicated) return {};
    const int dim = choice >= 0 ? dim_of(roles, choice) : kNone;
    return dim == kNone ? AxisPlacement{Kind::Partial, 0} : AxisPlacement{Kind::Split, dim};
}

AxisPlacement placement_on(const Distribution& distribution, int axis) {
    for (const DimSplit& s : distribution.splits)
        if (std::find(s.axes.begin(), s.axes.end(), axis) != s.axes.end()) return {Kind::Split, s.dim};
    const auto& partial = distribution.partial;
    if (std::find(partial.begin(), partial.end(), axis) != partial.end()) return {Kind::Partial, 0};
    return {};
}

AxisChoice::AxisChoice(const Graph& graph, const Forms& forms) : graph_(graph), forms_(forms) {
    for (const Store& store : graph.stores()) stored_as_[store.value] = store.state;
}

void AxisChoice::remember(const PlacingOp& op) {
    if (!has_weights(op.node.op) || op.node.phase != Phase::Forward) return;
    auto& labels = forward_[{op.node.layer, op.node.micro_batch}];
    labels.clear();
    for (const int c : op.choice) labels.push_back(c >= 0 ? op.signature.labels[static_cast<size_t>(c)].name : "");
}

int AxisChoice::choose(const PlacingOp& op, int axis) const {
    if (op.grid.axes[static_cast<size_t>(axis)].size == 1) return kReplicated;
    if (has_weights(op.node.op)) {
        if (op.node.phase == Phase::Backward) {
            const auto labels = forward_.find({op.node.layer, op.node.micro_batch});
            if (labels != forward_.end()) return label_named(op.signature, labels->second[static_cast<size_t>(axis)]);
        } else if (!op.entry.weight.empty() || !op.entry.input.empty()) {
            return choice_of_plan(op, axis);
        }
    }
    return cheapest(op, axis);
}

// What the plan says of a layer's input and weights names the label. With the weights cut by filters the input is gathered on the way,
// however it is stored.
int AxisChoice::choice_of_plan(const PlacingOp& op, int axis) const {
    const auto at = [&](const Placement& p) { return p.empty() ? AxisPlacement{} : p[static_cast<size_t>(axis)]; };
    const AxisPlacement x = at(op.entry.input), weight = at(op.entry.weight);
    std::string possible;
    for (size_t l = 0; l < op.signature.labels.size(); ++l) {
        const int label = static_cast<int>(l);
        const AxisPlacement lx = split_by(op.signature.inputs[kInput], label), lw = split_by(op.signature.inputs[kWeight], label);
        if (lw == weight && (lx == x || (lx.kind == Kind::Replicate && weight.kind == Kind::Split))) return label;
        possible += fmt::format("{}input {}, weight {}", possible.empty() ? "" : "; ", text_of(lx), text_of(lw));
    }
    if (x.kind == Kind::Replicate && weight.kind == Kind::Replicate) return kReplicated;
    fail(
        "layer \"{}\" ({}) cannot have its input as \"{}\" and its weight as \"{}\" along axis \"{}\"; what works: {}; or both "
        "\"replicate\"",
        op.node.layer, convoy::text_of(op.node.op), text_of(x), text_of(weight), op.grid.axes[static_cast<size_t>(axis)].name, possible);
}

int AxisChoice::cheapest(const PlacingOp& op, int axis) const {
    std::vector<int> options{kReplicated};
    if (op.signature.linear) options.push_back(kPassPartial);
    for (size_t l = 0; l < op.signature.labels.size(); ++l) options.push_back(static_cast<int>(l));
    double best = std::numeric_limits<double>::infinity();
    int chosen = kReplicated;
    for (const int option : options) {
        const double c = cost(op, axis, option);
        if (c < best) {
            best = c;
            chosen = option;
        }
    }
    return chosen;
}

// Bytes that travel per rank, roughly; smaller than a byte: preferences between equals.
double AxisChoice::cost(const PlacingOp& op, int axis, int choice) const {
    double total = 0;
    for (size_t i = 0; i < op.node.inputs.size(); ++i) total += input_cost(op, i, axis, choice);
    for (size_t o = 0; o < op.node.outputs.size(); ++o) total += output_cost(op, o, axis, choice);
    return total;
}

double AxisChoice::input_cost(const PlacingOp& op, size_t input, int axis, int choice) const {
    const ValueId v = op.node.inputs[input];
    const Axis& along = op.grid.axes[static_cast<size_t>(axis)];
    const double p = along.size;
    const AxisPlacement need = input_as(op.signature.inputs[input], choice);
    if (is_given(graph_, v) || !forms_.placed(v)) {
        // Free to lie as is best: along an axis that is named after the label, cut.
        if (need.kind == Kind::Partial) return kImpossible;
        if (need.kind == Kind::Replicate) return 0;
        return op.signature.labels[static_cast<size_t>(choice)].name == along.name ? -0.5 : 0.25;
    }
    if (op.takes_own_part(input)) return 0;
    const bool derived = need.kind == Kind::Split && op.signature.inputs[input][static_cast<size_t>(need.dim)].derived;
    double least = kImpossible;
    for (const int f : forms_.of(v)) {
        if (forms_.at(f).distribution.grid != op.grid_id) continue;
        const AxisPlacement from = placement_on(forms_.at(f).distribution, axis);
        // Statistics are merged everywhere, whatever part is needed.
        const bool merged = from.kind == Kind::Partial && forms_.of_statistics(v);
        least = std::min(least, travel(from, merged ? AxisPlacement{} : need, bytes(v), p, derived));
    }
    if (least < kImpossible || need.kind == Kind::Partial) return least;
    return bytes(v) / (need.kind == Kind::Split ? p : 1);  // from another grid
}

double AxisChoice::output_cost(const PlacingOp& op, size_t output, int axis, int choice) const {
    const AxisPlacement made = output_as(op.signature.outputs[output], choice);
    const auto want = wanted(op, output, axis);
    if (!want) return made.kind == Kind::Split ? 0.0625 : 0;
    if (made == *want) return 0;
    return travel(made, *want, bytes(op.node.outputs[output]), op.grid.axes[static_cast<size_t>(axis)].size, false) + 0.125;
}

double AxisChoice::bytes(ValueId v) const { return 4.0 * static_cast<double>(numel(graph_.shape(v))); }

std::optional<AxisPlacement> AxisChoice::wanted(const PlacingOp& op, size_t output, int axis) const {
    const ValueId v = op.node.outputs[output];
    if (const auto store = stored_as_.find(v); store != stored_as_.end() && forms_.placed(store->second))
        return home_on(op, store->second, axis);
    if (op.node.phase == Phase::Forward) {
        if (op.entry.output.empty() || makes_statistics(op.node.op) || graph_.shape(v).size() < 2) return std::nullopt;
        const AxisPlacement p = op.entry.output[static_cast<size_t>(axis)];
        return p.kind == Kind::Split && p.dim >= graph_.shape(v).size() ? AxisPlacement{} : p;
    }
    const ValueId of = graph_.value(v).gradient_of;
    if (of == kNone || is_state(graph_, of) || !forms_.placed(of)) return std::nullopt;
    return home_on(op, of, axis);
}

std::optional<AxisPlacement> AxisChoice::home_on(const PlacingOp& op, ValueId v, int axis) const {
    const Distribution& d = forms_.lies(v);
    if (d.grid != op.grid_id) return std::nullopt;
    const AxisPlacement p = placement_on(d, axis);
    return p.kind == Kind::Partial ? AxisPlacement{} : p;
}

}  // namespace convoy
