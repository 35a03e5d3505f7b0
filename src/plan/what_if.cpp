#include "plan/what_if.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "model/autodiff.h"

namespace convoy {

namespace {

// A convolution by itself, with its gradients, as a graph of its own.
Graph alone(const SearchOp& op, const ConvOp& conv, int64_t filters) {
    Graph graph;
    const Shape x = op.forward.inputs[0].shape;
    Shape w = op.forward.inputs[1].shape;
    w[0] = filters;
    w[1] = x[1] / conv.groups;
    const ValueId input = graph.add_input("x", {x, Element::Real});
    const ValueId weight = graph.add_state({.name = "w", .shape = w, .initializer = {}});
    const ValueId here = graph.add1(ScaleOp{1.0}, {input}, "before");  // so that the gradient of x is wanted and travels
    const ValueId y = graph.add1(conv, {here, weight}, op.layer);
    const ValueId dy = graph.add_input("dy", {graph.shape(y), Element::Real});
    graph.set_phase(Phase::Backward);
    const auto gradients = backward(graph, {{y, dy}}, {weight, input});
    for (size_t i = 0; i < gradients.size(); ++i) graph.add_output(fmt::format("g{}", i), gradients[i]);
    return graph;
}

class Asking {
  public:
    Asking(const Machine& machine, const Target& target, const SearchOptions& options, const Grid& grid)
        : cost_(machine, {options.ranks, options.threads}), target_(target), dtype_(options.dtype), grid_(grid) {}

    // Seconds of the layer's own op; nothing when the choice cannot be made for this variant. `lies` is how its input lies.
    std::optional<double> seconds(const SearchOp& like, const ConvOp& conv, int64_t filters, const Choice& choice) {
        const Graph graph = alone(like, conv, filters);
        const SearchSpace space = search_space(graph);
        LocalKernels kernels(cost_, target_, dtype_);
        GridCosts costs(space, grid_, kernels);
        for (size_t i = 0; i < space.ops.size(); ++i) {
            const SearchOp& op = space.ops[i];
            if (!op.free) continue;
            const std::optional<Choice> same = translate(like, choice, op);
            if (!same) return std::nullopt;
            StepCost cost = costs.cost(i, *same);
            // The input comes as it is made: by channels where the layer is split by channels or filters.
            Spread from;
            for (int a = 0; a < costs.axes(); ++a) {
                const int label = same->label[static_cast<size_t>(a)];
                if (label < 0) continue;
                const std::string& name = op.forward.signature.labels[static_cast<size_t>(label)].name;
                from[a] = name == "filter" ? int16_t{1} : static_cast<int16_t>(dim_of(op.forward.signature.inputs[0], label));
            }
            cost += costs.read(i, op.reads[0], from, *same);
            return cost.waits() + cost.gradient;
        }
        return std::nullopt;
    }

  private:
    // The same labels by name; channels and filters become groups where there are groups.
    std::optional<Choice> translate(const SearchOp& from, const Choice& choice, const SearchOp& to) const {
        Choice result;
        std::vector<int64_t> parts(to.forward.signature.labels.size(), 1);
        for (size_t a = 0; a < grid_.axes.size(); ++a) {
            if (choice.label[a] < 0) continue;
            std::string name = from.forward.signature.labels[static_cast<size_t>(choice.label[a])].name;
            int label = to.forward.label_named(name);
            if (label == kNone && (name == "channel" || name == "filter")) label = to.forward.label_named("group");
            if (label == kNone) continue;
            parts[static_cast<size_t>(label)] *= grid_.axes[a].size;
            if (parts[static_cast<size_t>(label)] > to.forward.signature.labels[static_cast<size_t>(label)].length) return std::nullopt;
            result.label[a] = static_cast<int16_t>(label);
            const int dim = dim_of(to.forward.signature.outputs[0], label);
            result.out[static_cast<int>(a)] = dim == kNone ? choice.out[static_cast<int>(a)] : static_cast<int16_t>(dim);
        }
        return result;
    }

    CostModel cost_;
    const Target& target_;
    DType dtype_;
    const Grid& grid_;
};

int parts_of_channels(const SearchOp& op, const Choice& choice, const Grid& grid) {
    int parts = 1;
    for (size_t a = 0; a < grid.axes.size(); ++a) {
        if (choice.label[a] < 0) continue;
        const std::string& name = op.forward.signature.labels[static_cast<size_t>(choice.label[a])].name;
        if (name == "channel" || name == "filter") parts *= grid.axes[a].size;
    }
    return parts;
}

}  // namespace

std::vector<WhatIf> what_if(const Graph& graph, const Plan& plan, const Machine& machine, const Target& target,
                            const SearchOptions& options, size_t most) {
    const SearchSpace space = search_space(graph);
    const auto chosen = choices_of(space, plan);
    std::vector<WhatIf> list;
    const std::vector<Choice> none(space.ops.size());
    const std::vector<Choice>& choices = chosen ? *chosen : none;
    const Grid grid = chosen ? plan.grids[0] : Grid::single();
    Asking ask(machine, target, options, grid);
    for (size_t i = 0; i < space.ops.size(); ++i) {
        const SearchOp& op = space.ops[i];
        const auto* conv = std::get_if<ConvOp>(&op.forward.op);
        if (!conv || conv->groups != 1) continue;
        const int64_t channels = op.forward.inputs[0].shape[1], filters = op.forward.outputs[0].shape[1];
        const auto now = ask.seconds(op, *conv, filters, choices[i]);
        if (!now) continue;
        WhatIf what{.layer = op.layer, .seconds = *now, .grouped_seconds = *now, .filters = 2 * filters};
        ConvOp grouped = *conv;
        for (int groups = std::max(2, parts_of_channels(op, choices[i], grid)); groups <= 64; groups *= 2) {
            if (channels % groups != 0 || filters % groups != 0) break;
            grouped.groups = groups;
            const auto then = ask.seconds(op, grouped, filters, choices[i]);
            if (!then) continue;
            if (*then < 0.9 * what.grouped_seconds) {  // more groups only where they gain again
                what.groups = groups;
                what.grouped_seconds = *then;
            }
        }
        what.wider_seconds = ask.seconds(op, *conv, 2 * filters, choices[i]).value_or(2 * *now);
        list.push_back(what);
    }
    std::stable_sort(list.begin(), list.end(), [](const WhatIf& a, const WhatIf& b) {
        return std::max(a.grouped_gain(), a.wider_gain() * a.seconds) > std::max(b.grouped_gain(), b.wider_gain() * b.seconds);
    });
    if (list.size() > most) list.resize(most);
    return list;
}

}  // namespace convoy
