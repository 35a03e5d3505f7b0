// Shapes of grids, and the way from choices to a plan and back.
#include <algorithm>
#include <map>

#include "base/error.h"
#include "model/cost.h"
#include "plan/search.h"
#include "program/plan_spec.h"

namespace convoy {

namespace {

constexpr int kThinAxis = 16;  // of three axes, the two faster ones have at most so many ranks when there are many shapes
constexpr size_t kManyShapes = 24;

std::vector<int> divisors(int n) {
    std::vector<int> list;
    for (int d = 2; d < n; ++d)
        if (n % d == 0) list.push_back(d);
    return list;
}

AxisPlacement placement(int dim) { return dim >= 0 ? AxisPlacement{AxisPlacement::Kind::Split, dim} : AxisPlacement{}; }

// What most of the work along an axis is split by names it.
std::vector<std::string> axis_names(const SearchSpace& space, const Grid& grid, const std::vector<Choice>& chosen) {
    std::vector<std::string> names;
    for (size_t a = 0; a < grid.axes.size(); ++a) {
        std::map<std::string, double> share;
        for (size_t i = 0; i < space.ops.size(); ++i) {
            if (!space.ops[i].free || chosen[i].label[a] < 0) continue;
            std::string name = space.ops[i].forward.signature.labels[static_cast<size_t>(chosen[i].label[a])].name;
            if (name == "filter" || name == "group") name = "channel";
            const LabelledOp& op = space.ops[i].forward;
            share[name] += cost_of(op.op, op.inputs, op.outputs).work;
        }
        std::string best = "spare";
        double most = -1;
        for (const auto& [name, work] : share)
            if (work > most) {
                most = work;
                best = name;
            }
        const auto times = std::count_if(names.begin(), names.end(), [&](const std::string& n) { return n.rfind(best, 0) == 0; });
        names.push_back(times == 0 ? best : fmt::format("{}{}", best, times + 1));
    }
    return names;
}

}  // namespace

std::vector<Grid> search_grids(int ranks) {
    const auto grid = [](const std::vector<int>& sizes) {
        std::vector<Axis> axes;
        for (size_t a = 0; a < sizes.size(); ++a) axes.push_back({fmt::format("axis{}", a), sizes[a]});
        return Grid::over(axes);
    };
    std::vector<Grid> grids;
    if (ranks == 1) return {Grid::single()};
    grids.push_back(grid({ranks}));
    for (const int d : divisors(ranks)) grids.push_back(grid({ranks / d, d}));
    std::vector<std::vector<int>> three;
    for (const int c : divisors(ranks))
        for (const int b : divisors(ranks / c)) three.push_back({ranks / c / b, b, c});
    if (three.size() > kManyShapes)
        std::erase_if(three, [](const std::vector<int>& s) { return s[1] > kThinAxis || s[2] > kThinAxis || s[1] < s[2]; });
    for (const auto& sizes : three) grids.push_back(grid(sizes));
    return grids;
}

Plan plan_of(const SearchSpace& space, const Grid& grid, const std::vector<Choice>& chosen) {
    Plan plan{{grid}, {}};
    const auto names = axis_names(space, grid, chosen);
    for (size_t a = 0; a < names.size(); ++a) plan.grids[0].axes[a].name = names[a];
    const size_t axes = grid.axes.size();
    for (size_t i = 0; i < space.ops.size(); ++i) {
        const SearchOp& op = space.ops[i];
        if (!op.free) continue;
        LayerPlan entry{.layers = op.layer};
        for (size_t a = 0; a < axes; ++a) {
            const int label = chosen[i].label[a];
            const auto dim = [&](const DimRoles& roles) { return label >= 0 ? dim_of(roles, label) : kNone; };
            entry.input.push_back(placement(dim(op.forward.signature.inputs[0])));
            entry.weight.push_back(placement(dim(op.forward.signature.inputs[1])));
            entry.output.push_back(placement(chosen[i].out[static_cast<int>(a)]));
        }
        plan.layers.push_back(std::move(entry));
    }
    plan.layers.push_back(LayerPlan{});
    return plan;
}

std::optional<std::vector<Choice>> choices_of(const SearchSpace& space, const Plan& plan) {
    if (plan.grids.size() != 1 || plan.grids[0].axes.size() > kMostAxes) return std::nullopt;
    std::vector<Choice> chosen(space.ops.size());
    for (size_t i = 0; i < space.ops.size(); ++i) {
        const SearchOp& op = space.ops[i];
        if (!op.free) continue;
        const LayerPlan& entry = layer_plan(plan, op.layer);
        if (entry.input.empty() || entry.weight.empty()) return std::nullopt;
        const Signature& signature = op.forward.signature;
        for (size_t a = 0; a < plan.grids[0].axes.size(); ++a) {
            for (size_t l = signature.labels.size(); l-- > 0;) {
                const int label = static_cast<int>(l);
                const AxisPlacement x = placement(dim_of(signature.inputs[0], label)), w = placement(dim_of(signature.inputs[1], label));
                const bool gathered = x.kind == AxisPlacement::Kind::Replicate && entry.weight[a].kind == AxisPlacement::Kind::Split;
                if (w == entry.weight[a] && (x == entry.input[a] || gathered)) chosen[i].label[a] = static_cast<int16_t>(l);
            }
            const int label = chosen[i].label[a];
            const AxisPlacement to =
                entry.output.empty() ? placement(label >= 0 ? dim_of(signature.outputs[0], label) : kNone) : entry.output[a];
            if (to.kind == AxisPlacement::Kind::Split) chosen[i].out[static_cast<int>(a)] = static_cast<int16_t>(to.dim);
        }
    }
    return chosen;
}

std::string words_of(const SearchOp& op, const Choice& choice, const Grid& grid) {
    std::map<int, int> parts;  // by label
    std::vector<int> order;
    for (size_t a = 0; a < grid.axes.size(); ++a) {
        const int label = choice.label[a];
        if (label < 0 || grid.axes[a].size == 1) continue;
        if (!parts.count(label)) order.push_back(label);
        parts.emplace(label, 1).first->second *= grid.axes[a].size;
    }
    std::vector<std::string> words;
    for (const int label : order) {
        const std::string& name = op.forward.signature.labels[static_cast<size_t>(label)].name;
        const bool plural = name == "sample" || name == "channel" || name == "filter" || name == "group";
        words.push_back(fmt::format("{}{}/{}", name, plural ? "s" : "", parts[label]));
    }
    return words.empty() ? "whole" : fmt::format("{}", fmt::join(words, " "));
}

}  // namespace convoy
