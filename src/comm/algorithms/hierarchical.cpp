// Inside each node, then between nodes, then inside again, so that only the sums cross the network. With equally many ranks on every node each rank
// carries its share of the vector over the network (reduce-scatter, all-reduce between equals, all-gather); otherwise one rank of each node
// carries all of it.
#include <algorithm>
#include <map>

#include "comm/algorithms/algorithms.h"

namespace convoy {

namespace {

// The places of each node, in order of the nodes' first places.
std::vector<std::vector<int>> by_node(const std::vector<int>& nodes) {
    std::vector<std::vector<int>> places;
    std::map<int, size_t> known;
    for (size_t p = 0; p < nodes.size(); ++p) {
        const auto [at, added] = known.emplace(nodes[p], places.size());
        if (added) places.emplace_back();
        places[at->second].push_back(static_cast<int>(p));
    }
    return places;
}

Team part_of(const Team& team, const std::vector<int>& places) {
    Team part{team.steps, {}, 0};
    for (const int p : places) {
        if (p == team.place) part.place = part.size();
        part.ranks.push_back(team.at(p));
    }
    return part;
}

void reduce_between(const Team& team, const Elements& elements, std::byte* data, int64_t count) {
    if (team.size() == 1) return;
    if (count * elements.size <= 16 << 10)
        all_reduce_recursive_doubling(team, elements, data, count);
    else
        all_reduce_rabenseifner(team, elements, data, count);
}

void by_shares(const Team& local, const Team& equals, const Elements& elements, std::byte* data, int64_t count) {
    const auto counts = even_counts(count, local.size());
    std::byte* const own = data + offsets_of(counts)[static_cast<size_t>(local.place)] * elements.size;
    reduce_scatter_pairwise(local, elements, data, own, counts);
    reduce_between(equals, elements, own, counts[static_cast<size_t>(local.place)]);
    std::vector<int64_t> bytes;
    for (const int64_t c : counts) bytes.push_back(c * elements.size);
    all_gather_pairwise(local, data, bytes);
}

void by_leaders(const Team& local, const Team& leaders, const Elements& elements, std::byte* data, int64_t count) {
    for (int bit = 1; bit < local.size(); bit *= 2) {
        if (local.place & bit) {
            send_pieces(local, elements, local.place - bit, data, count);
            local.steps.wait_all();
            break;
        }
        if (local.place + bit < local.size()) run(local, elements, {.peer = local.place + bit, .data = data, .count = count});
    }
    if (local.place == 0) reduce_between(leaders, elements, data, count);
    broadcast_tree(local, data, count * elements.size, 0);
}

}  // namespace

void all_reduce_hierarchical(const Team& team, const std::vector<int>& nodes, const Elements& elements, std::byte* data, int64_t count) {
    const auto places = by_node(nodes);
    const auto is_mine = [&](const std::vector<int>& node) { return std::find(node.begin(), node.end(), team.place) != node.end(); };
    const auto& mine = *std::find_if(places.begin(), places.end(), is_mine);
    const bool even = std::all_of(places.begin(), places.end(), [&](const auto& node) { return node.size() == mine.size(); });
    const Team local = part_of(team, mine);
    std::vector<int> across;
    for (const auto& node : places) across.push_back(node[even ? static_cast<size_t>(local.place) : 0]);
    const Team equals = part_of(team, across);
    if (even)
        by_shares(local, equals, elements, data, count);
    else
        by_leaders(local, equals, elements, data, count);
}

}  // namespace convoy
