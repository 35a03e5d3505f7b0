#include "comm/transport.h"

#include <algorithm>
#include <array>

namespace convoy {

std::string_view name_of(Lane lane) {
    constexpr std::array<std::string_view, kLanes> names{"activation", "gradient", "late", "service"};
    return names[static_cast<size_t>(lane)];
}

// FNV-1a over the ranks, then the lane.
GroupKey group_key(const std::vector<Rank>& group, Lane lane) {
    GroupKey key = 0xcbf29ce484222325ULL;
    const auto mix = [&key](uint64_t value) { key = (key ^ value) * 0x100000001b3ULL; };
    for (const Rank rank : group) mix(static_cast<uint64_t>(rank) + 1);
    mix(0xFFFF + static_cast<uint64_t>(lane));
    return key;
}

const Transport::Works& Transport::works_at_end() {
    std::call_once(ended_, [this] {
        for (size_t lane = 0; lane < at_end_.size(); ++lane) at_end_[lane] = work_[lane].now();
    });
    return at_end_;
}

bool on_one_node(const std::vector<int>& nodes, const std::vector<Rank>& group) {
    const auto node = [&](Rank rank) { return nodes[static_cast<size_t>(rank)]; };
    return std::all_of(group.begin(), group.end(), [&](Rank rank) { return node(rank) == node(group.front()); });
}

}  // namespace convoy
