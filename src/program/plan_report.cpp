#include "program/plan_report.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/json.h"
#include "program/placed_graph.h"
#include "program/signature.h"

namespace convoy {

namespace {

// What the dims of an activation are called, and those of weights.
std::string activation_dim(int dim, int size) {
    if (dim < 2) return dim == 0 ? "samples" : "channels";
    return spatial_name(dim - 2, size - 2);
}
std::string weight_dim(const Op& op, int dim, int size) {
    const bool transposed = std::holds_alternative<ConvGradInputOp>(op);
    if (size < 2) return "channels";
    if (dim < 2) return (dim == 0) != transposed ? "filters" : "inputs";
    return fmt::format("dim {}", dim);
}

template <class Name>
std::string words_of(const PlacedValue& value, const Plan& plan, const Shape& shape, const Name& name_of_dim) {
    const Grid& grid = plan.grids[static_cast<size_t>(value.distribution.grid)];
    const auto parts = [&](const std::vector<int>& axes) {
        int count = 1;
        for (const int a : axes) count *= grid.axes[static_cast<size_t>(a)].size;
        return count;
    };
    std::vector<std::string> words;
    for (const DimSplit& split : value.distribution.splits)
        if (parts(split.axes) > 1) words.push_back(fmt::format("{}/{}", name_of_dim(split.dim, shape.size()), parts(split.axes)));
    if (parts(value.distribution.partial) > 1) words.push_back(fmt::format("sum of {}", parts(value.distribution.partial)));
    if (words.empty()) words.push_back(grid.size() > 1 ? "whole" : fmt::format("on rank {}", grid.ranks[0]));
    if (value.boxes != owned_boxes(value.distribution, grid, shape)) words.push_back("+halo");
    return fmt::format("{}", fmt::join(words, " "));
}

class Reporting {
  public:
    Reporting(const Graph& graph, const Plan& plan) : graph_(graph), plan_(plan), placed_(place(graph, plan)) {
        report_.grids = plan.grids;
        find_homes();
        for (size_t n = 0; n < placed_.nodes.size(); ++n) {
            const PlacedNode& node = placed_.nodes[n];
            if (node.node != kNone && node.phase == Phase::Forward && node.micro_batch == 0) add_node(n);
        }
    }

    PlanReport run(const std::vector<RankReport>& ranks) {
        for (const RankReport& rank : ranks) add_rank(rank);
        return std::move(report_);
    }

  private:
    const PlacedValue& form(int f) const { return placed_.values[static_cast<size_t>(f)]; }

    // The first form of a value is where it was made or, for a state, where it lies.
    void find_homes() {
        for (size_t f = 0; f < placed_.values.size(); ++f) homes_.emplace(placed_.values[f].value, static_cast<int>(f));
    }

    void add_node(size_t n) {
        const PlacedNode& placed = placed_.nodes[n];
        const Node& node = graph_.node(placed.node);
        const auto [at, added] = index_.emplace(node.layer, report_.layers.size());
        if (added) {
            report_.layers.push_back({.layer = node.layer});
            for (size_t i = 0; i < node.inputs.size() && report_.layers.back().input.empty(); ++i)
                if (!is_state(node.inputs[i]))
                    report_.layers.back().input = words_of(form(placed.inputs[i]), plan_, graph_.shape(node.inputs[i]), activation_dim);
        }
        LayerReport& layer = report_.layers[at->second];
        add_sources(node, layer);
        layer.kind += (layer.kind.empty() ? "" : " + ") + text_of(node.op);
        for (const ValueId v : node.inputs)
            if (is_parameter(v) && layer.weight.empty())
                layer.weight =
                    words_of(form(homes_.at(v)), plan_, graph_.shape(v), [&](int dim, int size) { return weight_dim(node.op, dim, size); });
        describe_output(settled(n), node.outputs[0], layer);
    }

    void add_sources(const Node& node, LayerReport& layer) const {
        for (const ValueId v : node.inputs) {
            const NodeId by = graph_.value(v).producer;
            if (by == kNone || graph_.node(by).phase != Phase::Forward) continue;
            const std::string& source = graph_.node(by).layer;
            if (source != layer.layer && std::find(layer.from.begin(), layer.from.end(), source) == layer.from.end())
                layer.from.push_back(source);
        }
    }

    void describe_output(int f, ValueId v, LayerReport& layer) const {
        layer.output = words_of(form(f), plan_, graph_.shape(v), activation_dim);
        layer.local = layer.smallest = form(f).boxes[0].shape;
        for (const Box& box : form(f).boxes.list())
            if (numel(box.shape) < numel(layer.smallest)) layer.smallest = box.shape;
    }

    // Where a result goes at once: the moves that follow its op.
    int settled(size_t at) const {
        int f = placed_.nodes[at].outputs[0];
        for (size_t n = at + 1; n < placed_.nodes.size(); ++n) {
            const PlacedNode& next = placed_.nodes[n];
            if (next.node != kNone || next.inputs[0] != f || next.layer != placed_.nodes[at].layer ||
                form(next.outputs[0]).boxes != owned(next.outputs[0]))
                break;
            f = next.outputs[0];
        }
        return f;
    }
    Boxes owned(int f) const {
        const Distribution& d = form(f).distribution;
        return owned_boxes(d, plan_.grids[static_cast<size_t>(d.grid)], graph_.shape(form(f).value));
    }

    bool is_state(ValueId v) const { return graph_.value(v).state != kNone; }
    bool is_parameter(ValueId v) const {
        return is_state(v) && graph_.states()[static_cast<size_t>(graph_.value(v).state)].kind == StateKind::Parameter;
    }

    // The row of the layer that traffic belongs to; that of an update is charged to the parameter, "conv1.weight".
    LayerReport& row_of(std::string layer) {
        auto at = index_.find(layer);
        if (at == index_.end()) {
            const std::string prefix = layer.substr(0, layer.rfind('.'));
            at = index_.find(prefix);
        }
        if (at == index_.end()) {
            at = index_.emplace(layer, report_.layers.size()).first;
            report_.layers.push_back({.layer = std::move(layer)});
        }
        return report_.layers[at->second];
    }

    void add_rank(const RankReport& rank) {
        report_.ranks.push_back(rank.sums);
        std::map<std::string, RankSums> rows;
        for (const auto& [name, sent] : rank.layers) {
            RankSums& row = rows[row_of(name).layer];
            row.activation_bytes += sent.activation_bytes;
            row.gradient_bytes += sent.gradient_bytes;
        }
        for (const auto& [name, sent] : rows) {
            LayerReport& row = row_of(name);
            row.activation_bytes = std::max(row.activation_bytes, sent.activation_bytes);
            row.gradient_bytes = std::max(row.gradient_bytes, sent.gradient_bytes);
        }
    }

    const Graph& graph_;
    const Plan& plan_;
    const PlacedGraph placed_;
    PlanReport report_;
    std::map<ValueId, int> homes_;
    std::map<std::string, size_t> index_;  // of layers
};

Json to_json(const RankSums& r) {
    return {{"arena_bytes", r.arena_bytes},
            {"state_bytes", r.state_bytes},
            {"activation_bytes_sent", r.activation_bytes},
            {"gradient_bytes_sent", r.gradient_bytes}};
}

RankSums sums_from_json(const Json& json) {
    return {json.at("arena_bytes"), json.at("state_bytes"), json.at("activation_bytes_sent"), json.at("gradient_bytes_sent")};
}

}  // namespace

RankReport report_rank(const Program& program) {
    RankReport report{.sums = {program.memory.arena_bytes, program.memory.state_bytes}, .layers = {}};
    for (const Instruction& in : program.instructions) {
        if (!is_traffic(in.action)) continue;
        const auto add = [&](const std::string& name, int64_t sent) {
            for (RankSums* part : {&report.sums, &report.layers[name]})
                (is_gradient_queue(in.queue) ? part->gradient_bytes : part->activation_bytes) += sent;
        };
        const auto* collective = std::get_if<Collective>(&in.action);
        if (!collective || collective->members.empty())
            add(in.layer, in.sent);
        else
            for (const Collective::Member& member : collective->members) add(member.layer, member.sent);
    }
    return report;
}

Json to_json(const RankReport& report) {
    Json layers = Json::object();
    for (const auto& [name, sums] : report.layers) layers[name] = to_json(sums);
    return {{"sums", to_json(report.sums)}, {"layers", layers}};
}

RankReport rank_report_from_json(const Json& json) {
    RankReport report{.sums = sums_from_json(json.at("sums")), .layers = {}};
    for (const auto& [name, sums] : json.at("layers").items()) report.layers[name] = sums_from_json(sums);
    return report;
}

PlanReport report_plan(const Graph& graph, const Plan& plan, const Target& target, DType dtype) {
    std::vector<RankReport> ranks;
    for (Rank r = 0; r < ranks_of(plan); ++r) ranks.push_back(report_rank(compile(graph, plan, target, {.dtype = dtype, .rank = r})));
    PlanReport report = report_plan(graph, plan, ranks);
    report.one = report_rank(compile(graph, Plan::single(), target, {.dtype = dtype})).sums;
    return report;
}

PlanReport report_plan(const Graph& graph, const Plan& plan, const std::vector<RankReport>& ranks) {
    return Reporting(graph, plan).run(ranks);
}

std::string words_of(const Grid& grid) {
    std::vector<std::string> axes;
    for (const Axis& axis : grid.axes) axes.push_back(fmt::format("{}:{}", axis.name, axis.size));
    bool in_order = true;
    for (size_t i = 0; i < grid.ranks.size(); ++i) in_order = in_order && grid.ranks[i] == grid.ranks[0] + static_cast<int>(i);
    const std::string ranks = in_order && grid.size() > 2 ? fmt::format("{} to {}", grid.ranks.front(), grid.ranks.back())
                                                          : fmt::format("{}", fmt::join(grid.ranks, ", "));
    return fmt::format("{} (rank{} {})", axes.empty() ? "one rank" : fmt::format("{}", fmt::join(axes, ", ")), grid.size() == 1 ? "" : "s",
                       ranks);
}

Json to_json(const PlanReport& report) {
    Json grids = Json::array(), layers = Json::array(), ranks = Json::array();
    for (const Grid& grid : report.grids) grids.push_back(to_json(grid));
    for (const LayerReport& layer : report.layers)
        layers.push_back({{"layer", layer.layer},
                          {"kind", layer.kind},
                          {"from", layer.from},
                          {"input", layer.input},
                          {"weight", layer.weight},
                          {"output", layer.output},
                          {"local_output", to_string(layer.local)},
                          {"smallest_output", to_string(layer.smallest)},
                          {"activation_bytes_sent", layer.activation_bytes},
                          {"gradient_bytes_sent", layer.gradient_bytes}});
    for (const auto& rank : report.ranks) ranks.push_back(to_json(rank));
    Json json{{"grids", grids}, {"layers", layers}, {"ranks", ranks}};
    if (report.one) json["one_process"] = to_json(*report.one);
    return json;
}

Json placement_document(const PlanSubject& subject, const UniformPlan& plan, const PlanReport& report) {
    Json document{{"model", subject.model}, {"batch", subject.batch},          {"plan", to_json(plan.plan)},
                  {"spec", subject.spec},   {"dtype", name_of(subject.dtype)}, {"backend", subject.backend}};
    document.update(to_json(report));
    Json unfollowed = Json::array();
    for (const Unfollowed& u : plan.unfollowed) unfollowed.push_back({{"layer", u.layer}, {"axis", u.axis}, {"reason", u.reason}});
    document["unfollowed"] = unfollowed;
    return document;
}

}  // namespace convoy
