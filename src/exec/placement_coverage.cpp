#include "exec/placement_coverage.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "program/plan_spec.h"
#include "program/signature.h"

namespace convoy {

namespace {

const char* const kWhole = "whole";
const char* const kUneven = "uneven cuts";
const char* const kEmpty = "ranks without rows";
const char* const kGrids = "two grids";
const char* const kMicro = "micro-batches";
const char* const kSharded = "sharded state";
const char* const kEvaluation = "evaluation";

std::string ranks_text(int ranks) { return fmt::format("{} rank{}", ranks, ranks == 1 ? "" : "s"); }

template <size_t... I>
std::vector<std::string> names(std::index_sequence<I...> /*alternatives*/) {
    return {std::string(name_of(Op(std::variant_alternative_t<I, Op>{})))...};
}

std::vector<std::string> ops_of_graphs() {
    std::vector<std::string> all = names(std::make_index_sequence<std::variant_size_v<Op>>{});
    // The compiler puts these around moves; no graph has them.
    std::erase_if(all, [](const std::string& op) { return op == "pack" || op == "unpack" || op == "merge_stats"; });
    return all;
}

bool is_cut(const DimSplit& split) { return split.cuts.size() > 2; }

}  // namespace

void Coverage::add(const Graph& graph, const Plan& plan) {
    const PlacedGraph placed = place(graph, plan);
    std::set<int> grids;
    bool micro = false, update = false;
    for (const PlacedNode& node : placed.nodes) {
        if (node.node == kNone) {
            ++moves_[std::string(name_of(node.move.kind))];
            continue;
        }
        look_at_op(graph, placed, node);
        for (const int v : node.outputs) grids.insert(placed.values[static_cast<size_t>(v)].distribution.grid);
        micro = micro || node.micro_batch > 0;
        update = update || node.phase == Phase::Update;
    }
    look_at_cuts(placed);
    look_at_states(graph, placed);
    if (grids.size() > 1) ++features_[kGrids];
    if (micro) ++features_[kMicro];
    if (!update) ++features_[kEvaluation];
    ++features_[ranks_text(ranks_of(plan))];
}

void Coverage::look_at_op(const Graph& graph, const PlacedGraph& placed, const PlacedNode& p) {
    const Node& node = graph.node(p.node);
    std::vector<ValueType> in, out;
    for (const ValueId v : node.inputs) in.push_back(graph.value(v).type);
    for (const ValueId v : node.outputs) out.push_back(graph.value(v).type);
    const Signature signature = signature_of(node.op, in, out);
    const std::string op(name_of(node.op));
    for (const Label& label : signature.labels) labels_[op].insert(label.name);
    std::set<std::string> split;
    const auto look = [&](const std::vector<int>& values, const std::vector<DimRoles>& roles) {
        for (size_t i = 0; i < values.size(); ++i)
            for (const DimSplit& s : placed.values[static_cast<size_t>(values[i])].distribution.splits)
                if (const int label = roles[i][static_cast<size_t>(s.dim)].label; label != kNone && is_cut(s))
                    split.insert(signature.labels[static_cast<size_t>(label)].name);
    };
    look(p.inputs, signature.inputs);
    look(p.outputs, signature.outputs);
    if (split.empty()) split.insert(kWhole);
    for (const std::string& label : split) ++ops_[op][label];
}

void Coverage::look_at_cuts(const PlacedGraph& placed) {
    bool uneven = false, empty = false;
    for (const PlacedValue& value : placed.values)
        for (const DimSplit& s : value.distribution.splits)
            for (size_t i = 0; i + 1 < s.cuts.size(); ++i) {
                const int64_t piece = s.cuts[i + 1] - s.cuts[i];
                empty = empty || piece == 0;
                uneven = uneven || (piece > 0 && s.cuts[1] > s.cuts[0] && piece != s.cuts[1] - s.cuts[0]);
            }
    if (uneven) ++features_[kUneven];
    if (empty) ++features_[kEmpty];
}

// Optimizer state that is cut where its parameter is not.
void Coverage::look_at_states(const Graph& graph, const PlacedGraph& placed) {
    const auto parts = [](const Distribution& d) {
        size_t axes = 0;
        for (const DimSplit& s : d.splits) axes += is_cut(s) ? s.axes.size() : 0;
        return axes;
    };
    std::map<std::string, size_t> of_state;
    for (const auto& [state, value] : placed.stores) {
        const PlacedValue& lies = placed.values[static_cast<size_t>(state)];
        of_state[graph.value(lies.value).name] = parts(lies.distribution);
    }
    for (const auto& [name, axes] : of_state) {
        const size_t dot = name.rfind('.');
        const std::string before = "optimizer.";
        if (!name.starts_with(before)) continue;
        const auto parameter = of_state.find(name.substr(before.size(), dot - before.size()));
        if (parameter == of_state.end() || axes <= parameter->second) continue;
        ++features_[kSharded];
        return;
    }
}

std::string Coverage::table() const {
    std::string text;
    const auto row = [&](const std::string& name, const std::map<std::string, int>& counts) {
        text += fmt::format("{:<32}", name);
        for (const auto& [kind, times] : counts) text += fmt::format(" {} {} ", kind, times);
        text += "\n";
    };
    for (const auto& [op, labels] : ops_) row(op, labels);
    row("(moves)", moves_);
    row("(cases)", features_);
    return text;
}

std::vector<std::string> Coverage::missing_ops() const {
    std::vector<std::string> missing;
    for (const std::string& op : ops_of_graphs())
        if (!ops_.count(op)) missing.push_back(op);
    return missing;
}

std::vector<std::string> Coverage::missing_splits() const {
    std::vector<std::string> missing;
    for (const auto& [op, labels] : labels_) {
        std::set<std::string> expected = labels;
        expected.insert(kWhole);
        for (const std::string& label : expected)
            if (count(op, label) == 0) missing.push_back(op + ": " + label);
    }
    return missing;
}

std::vector<std::string> Coverage::missing_moves() const {
    std::vector<std::string> missing;
    for (const auto kind : {Move::Kind::Slice, Move::Kind::AllReduce, Move::Kind::ReduceScatter, Move::Kind::AllGather,
                            Move::Kind::MergeStatistics, Move::Kind::Exchange})
        if (!moves_.count(std::string(name_of(kind)))) missing.emplace_back(name_of(kind));
    return missing;
}

std::vector<std::string> Coverage::missing_features() const {
    std::vector<std::string> missing;
    std::vector<std::string> all{kUneven, kEmpty, kGrids, kMicro, kSharded, kEvaluation};
    for (int ranks = 1; ranks <= 8; ++ranks) all.push_back(ranks_text(ranks));
    for (const std::string& feature : all)
        if (!features_.count(feature)) missing.push_back(feature);
    return missing;
}

int Coverage::count(const std::string& op, const std::string& label) const {
    const auto of = ops_.find(op);
    if (of == ops_.end()) return 0;
    const auto at = of->second.find(label);
    return at == of->second.end() ? 0 : at->second;
}

int Coverage::possible_splits() const {
    size_t pairs = 0;
    for (const auto& [op, labels] : labels_) pairs += labels.size();
    return static_cast<int>(pairs);
}

}  // namespace convoy
