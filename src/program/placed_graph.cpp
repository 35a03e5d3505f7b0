#include "program/placed_graph.h"

#include <algorithm>

#include <fmt/format.h>

namespace convoy {

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
        const std::string what = node.node == kNone ? std::string(name_of(node.move.kind)) : text_of(graph.node(node.node).op);
        text +=
            fmt::format("{:<8} {:<20} {:<24} {} -> {}\n", name_of(node.phase), node.layer, what, fmt::join(in, ", "), fmt::join(out, ", "));
    }
    return text;
}

}  // namespace convoy
