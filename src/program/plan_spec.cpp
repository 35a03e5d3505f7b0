#include "program/plan_spec.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "base/error.h"
#include "base/suggest.h"
#include "program/signature.h"

namespace convoy {

namespace {

using Kind = AxisPlacement::Kind;

const std::vector<std::string> kPresets{"data", "spatial", "hybrid-fc", "zero"};
const std::vector<std::string> kAxes{"sample", "depth", "height", "width", "channel", "filter"};

struct Spec {
    std::vector<Axis> axes;
    char method = 0;  // x, y or w for channel and filter axes
    bool hybrid = false, shard_state = false;
};

std::vector<std::string> split(const std::string& text, char by) {
    std::vector<std::string> parts;
    size_t begin = 0;
    while (true) {
        const size_t end = text.find(by, begin);
        parts.push_back(text.substr(begin, end - begin));
        if (end == std::string::npos) return parts;
        begin = end + 1;
    }
}

Axis parse_axis(const std::string& text, const std::string& spec) {
    const auto parts = split(text, ':');
    int size = 0;
    const std::string count = parts.size() == 2 ? parts[1] : "";
    const auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), size);
    require(error == std::errc() && end == count.data() + count.size() && size > 0,
            "\"{}\" in plan \"{}\" is no axis; expected a name and a number of parts, such as sample:4", text, spec);
    require(std::find(kAxes.begin(), kAxes.end(), parts[0]) != kAxes.end(), "plan \"{}\" names an axis \"{}\", known are {}{}", spec,
            parts[0], fmt::join(kAxes, ", "), did_you_mean(parts[0], kAxes));
    return {parts[0], size};
}

int spatial_rank(const Graph& graph) {
    for (const Node& node : graph.nodes())
        if (std::holds_alternative<ConvOp>(node.op)) return graph.shape(node.inputs[0]).size() - 2;
    return 2;
}

Spec preset(const std::string& name, int ranks, const Graph& graph) {
    require(ranks > 0, "plan \"{}\" needs a number of ranks (--ranks)", name);
    if (name == "spatial") {
        int first = 1;  // the larger of two factors, as square as can be
        for (int f = 1; f * f <= ranks; ++f)
            if (ranks % f == 0) first = ranks / f;
        const std::string major = spatial_rank(graph) == 3 ? "depth" : "height", minor = spatial_rank(graph) == 3 ? "height" : "width";
        Spec spec{.axes = {{major, first}}};
        if (ranks / first > 1) spec.axes.push_back({minor, ranks / first});
        return spec;
    }
    return {.axes = {{"sample", ranks}}, .hybrid = name == "hybrid-fc", .shard_state = name == "zero"};
}

Spec parse(const std::string& text, int ranks, const Graph& graph) {
    if (std::find(kPresets.begin(), kPresets.end(), text) != kPresets.end()) return preset(text, ranks, graph);
    const auto halves = split(text, '@');
    Spec spec;
    std::set<std::string> names;
    for (const auto& part : split(halves[0], ',')) {
        if (part.find(':') == std::string::npos && halves.size() == 1 && split(text, ',').size() == 1)
            fail("there is no plan \"{}\"; a plan is one of {}, axes such as sample:2,height:2, or a JSON file{}", text,
                 fmt::join(kPresets, ", "), did_you_mean(text, kPresets));
        spec.axes.push_back(parse_axis(part, text));
        require(names.insert(spec.axes.back().name).second, "plan \"{}\" names axis \"{}\" twice", text, spec.axes.back().name);
    }
    const bool channels = names.count("channel") || names.count("filter");
    if (halves.size() > 1) spec.method = halves[1].size() == 1 ? halves[1][0] : '?';
    require(halves.size() <= 2 && (halves.size() == 1 || spec.method == 'x' || spec.method == 'y' || spec.method == 'w'),
            "plan \"{}\" ends in \"@{}\"; expected @x, @y or @w", text, halves.back());
    require(!channels || spec.method != 0, "plan \"{}\" splits channels; say how: @x, @y or @w", text);
    require(channels || spec.method == 0, "plan \"{}\" splits no channels, so its \"@{}\" means nothing", text, halves.back());
    if (spec.method == 'w')
        require(names.count("channel") && names.count("filter"), "plan \"{}\": @w needs both channel:A and filter:B", text);
    else
        require(!names.count("filter"), "plan \"{}\": filter:B goes with channel:A and @w", text);
    return spec;
}

// Fills in the entry of one layer.
class LayerPlanner {
  public:
    LayerPlanner(const Graph& graph, const Node& node, const Spec& spec, std::vector<Unfollowed>& unfollowed)
        : node_(node), spec_(spec), unfollowed_(unfollowed) {
        const bool transposed = std::holds_alternative<ConvGradInputOp>(node.op);
        in_dim_ = transposed ? 0 : 1;  // of the weights: the dim of input channels
        if (std::holds_alternative<LocalConvOp>(node.op)) in_dim_ = graph.shape(node.inputs[0]).size() - 1;
        out_dim_ = transposed ? 1 : 0;
        x_ = graph.shape(node.inputs[0]);
        y_ = graph.shape(node.outputs[0]);
        if (const auto* conv = std::get_if<ConvOp>(&node.op)) groups_ = conv->groups;
        if (const auto* conv = std::get_if<ConvGradInputOp>(&node.op)) groups_ = conv->groups;
        entry_.layers = node.layer;
        const auto axes = spec.axes.size();
        entry_.input = entry_.weight = entry_.output = Placement(axes);
        if (spec.shard_state) entry_.state_axis = 0;
    }

    // `swapped`: for @w, the axes have changed roles, as they do from layer to layer. Returns whether the output is split by both.
    LayerPlan run(bool swapped, bool& both) {
        both = false;
        if (spec_.method == 'w') both = stationary_w(swapped);
        for (size_t a = 0; a < spec_.axes.size(); ++a) {
            const std::string& name = spec_.axes[a].name;
            if (name == "sample")
                sample(a);
            else if (name == "channel" && spec_.method == 'x')
                stationary_x(a);
            else if (name == "channel" && spec_.method == 'y')
                stationary_y(a);
            else if (name != "channel" && name != "filter")
                spatial(a);
        }
        return entry_;
    }

    // Model-parallel fully connected layers on the samples' axis: by filters and by channels in turn.
    LayerPlan run_hybrid(bool by_filter) {
        if (by_filter && fits(0, y_[1], "outputs")) {
            entry_.weight[0] = split(out_dim_);
            entry_.input[0] = split(0);
            entry_.output[0] = split(1);
        } else if (!by_filter && fits(0, x_[1], "inputs")) {
            entry_.input[0] = split(1);
            entry_.weight[0] = split(in_dim_);
            entry_.output[0] = split(0);
        } else {
            sample(0);
        }
        return entry_;
    }

  private:
    static AxisPlacement split(int dim) { return {Kind::Split, dim}; }
    int64_t parts(size_t a) const { return spec_.axes[a].size; }

    void cannot(size_t a, std::string reason) { unfollowed_.push_back({node_.layer, spec_.axes[a].name, std::move(reason)}); }
    bool fits(size_t a, int64_t length, const char* what) {
        if (length >= parts(a)) return true;
        cannot(a, fmt::format("{} {} on {} ranks", length, what, parts(a)));
        return false;
    }

    void sample(size_t a) {
        if (fits(a, x_[0], "samples")) entry_.input[a] = entry_.output[a] = split(0);
    }

    void spatial(size_t a) {
        const int rank = x_.size() - 2;
        for (int i = 0; i < rank; ++i) {
            if (spatial_name(i, rank) != spec_.axes[a].name) continue;
            if (std::holds_alternative<LocalConvOp>(node_.op)) return cannot(a, "its weights belong to positions");
            if (fits(a, std::min(x_[2 + i], y_[2 + i]), "rows")) entry_.input[a] = entry_.output[a] = split(2 + i);
            return;
        }
        cannot(a, rank < 1 ? "a fully connected layer has no space to split" : "it has no such dim");
    }

    // Grouped convolutions are split by groups, whatever the method: nothing travels then.
    bool grouped(size_t a) {
        if (groups_ == 1) return false;
        if (fits(a, groups_, "groups")) by_group(a);
        return true;
    }
    void by_group(size_t a) {
        entry_.input[a] = entry_.output[a] = split(1);
        entry_.weight[a] = split(0);
    }

    void stationary_x(size_t a) {
        if (grouped(a)) return;
        if (!fits(a, x_[1], "input channels")) return by_filter(a);
        entry_.input[a] = split(1);
        entry_.weight[a] = split(in_dim_);
        if (fits(a, y_[1], "filters")) entry_.output[a] = split(1);
    }
    void stationary_y(size_t a) {
        if (grouped(a) || !fits(a, y_[1], "filters")) return;
        if (fits(a, x_[1], "input channels")) entry_.input[a] = split(1);
        by_filter(a);
    }
    // The input is replicated; weights and output are split by filters.
    void by_filter(size_t a) {
        if (y_[1] < parts(a)) return;
        entry_.weight[a] = split(out_dim_);
        entry_.output[a] = split(1);
    }

    bool stationary_w(bool swapped) {
        size_t c = 0, f = 0;
        for (size_t a = 0; a < spec_.axes.size(); ++a) {
            if (spec_.axes[a].name == "channel") c = a;
            if (spec_.axes[a].name == "filter") f = a;
        }
        if (swapped) std::swap(c, f);
        const int64_t all = parts(c) * parts(f);
        if (groups_ > 1) {
            grouped_by_both(c, f);
            return false;
        }
        if (x_[1] < all || y_[1] < all) {
            cannot(c, fmt::format("{} channels and {} filters on {} ranks", x_[1], y_[1], all));
            stationary_y(f);
            return false;
        }
        entry_.input[c] = entry_.input[f] = split(1);
        entry_.weight[c] = split(in_dim_);
        entry_.weight[f] = split(out_dim_);
        entry_.output[c] = entry_.output[f] = split(1);
        return true;
    }

    // By one axis alone where the groups do not suffice for both.
    void grouped_by_both(size_t c, size_t f) {
        const int64_t all = parts(c) * parts(f);
        if (groups_ >= all) {
            by_group(c);
            by_group(f);
            return;
        }
        if (groups_ < parts(c)) std::swap(c, f);
        grouped(c);
        cannot(f, fmt::format("{} groups on {} ranks", groups_, all));
    }

    const Node& node_;
    const Spec& spec_;
    std::vector<Unfollowed>& unfollowed_;
    Shape x_, y_;
    int in_dim_ = 1, out_dim_ = 0;
    int64_t groups_ = 1;
    LayerPlan entry_;
};

bool has_weights(const Op& op) {
    return std::holds_alternative<ConvOp>(op) || std::holds_alternative<ConvGradInputOp>(op) || std::holds_alternative<LinearOp>(op) ||
           std::holds_alternative<LocalConvOp>(op);
}

}  // namespace

UniformPlan plan_from_spec(const std::string& text, int ranks, const Graph& graph) {
    const Spec spec = parse(text, ranks, graph);
    UniformPlan result;
    result.plan.grids = {Grid::over(spec.axes)};
    const int size = result.plan.grids[0].size();
    require(ranks == 0 || ranks == size, "plan \"{}\" needs {} ranks, but there are {}", text, size, ranks);
    std::set<std::string> seen;
    std::map<ValueId, bool> swapped;  // for @w: which of the two axes is the major one in a value's channels
    bool by_filter = true;
    for (const Node& node : graph.nodes()) {
        if (node.phase != Phase::Forward) continue;
        const auto from = swapped.find(node.inputs.empty() ? kNone : node.inputs[0]);
        bool order = from != swapped.end() && from->second;
        if (has_weights(node.op) && seen.insert(node.layer).second) {
            LayerPlanner planner(graph, node, spec, result.unfollowed);
            bool both = false;
            if (spec.hybrid && std::holds_alternative<LinearOp>(node.op)) {
                result.plan.layers.push_back(planner.run_hybrid(by_filter));
                by_filter = !by_filter;
            } else {
                result.plan.layers.push_back(planner.run(order, both));
            }
            if (both) order = !order;
        }
        for (const ValueId v : node.outputs) swapped[v] = order;
    }
    LayerPlan rest;
    if (spec.shard_state) rest.state_axis = 0;
    result.plan.layers.push_back(rest);
    return result;
}

int ranks_of(const Plan& plan) {
    int ranks = 0;
    for (const Grid& grid : plan.grids)
        for (const Rank r : grid.ranks) ranks = std::max(ranks, r + 1);
    return ranks;
}

}  // namespace convoy
