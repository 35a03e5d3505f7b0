#include "comm/collective_table.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <tuple>

#include "base/error.h"
#include "base/parse_json.h"

namespace convoy {

namespace {

constexpr int64_t kAnyBytes = std::numeric_limits<int64_t>::max();

auto order(const CollectiveTable::Entry& e) { return std::tuple(e.kind, !e.one_node, e.group_size, e.up_to_bytes); }

}  // namespace

// Measured on two cores with 2 ranks of Open MPI 4.1, whose own non-blocking collectives lose to ours at every size that matters, by up to two
// times. On one node all_reduce's Library is shared memory. For vectors above a MiB that is up to twice as fast as a ring when the two cores share a
// cache and up to twice as slow when they do not, so there it is left to measurement. Among threads it saves all copies and always wins. Between nodes the ring
// goes in small pieces, which lets activations through.
CollectiveTable CollectiveTable::defaults(std::string_view transport) {
    CollectiveTable table;
    if (transport != "mpi") return table;
    for (const int size : {2, 4, 16}) {
        table.set({Traffic::AllReduce, size, true, 1 << 20, Algorithm::Library});
        table.set({Traffic::AllReduce, size, true, kAnyBytes, Algorithm::Ring});
        table.set({Traffic::AllReduce, size, false, 2 << 10, Algorithm::RecursiveDoubling});
        if (size > 2) table.set({Traffic::AllReduce, size, false, 256 << 10, Algorithm::Rabenseifner});
        table.set({Traffic::AllReduce, size, false, kAnyBytes, Algorithm::Ring});
        table.set({Traffic::Barrier, size, true, kAnyBytes, Algorithm::Library});
        table.set({Traffic::Barrier, size, false, kAnyBytes, Algorithm::RecursiveDoubling});
        for (const bool one_node : {true, false}) {
            table.set({Traffic::ReduceScatter, size, one_node, 16 << 20, Algorithm::Ring});
            table.set({Traffic::ReduceScatter, size, one_node, kAnyBytes, Algorithm::Pairwise});
            table.set({Traffic::AllGather, size, one_node, 16 << 10, size > 4 ? Algorithm::Bruck : Algorithm::Pairwise});
            table.set({Traffic::AllGather, size, one_node, kAnyBytes, size > 4 ? Algorithm::Ring : Algorithm::Pairwise});
            table.set({Traffic::AllToAll, size, one_node, kAnyBytes, Algorithm::Pairwise});
            table.set({Traffic::Broadcast, size, one_node, kAnyBytes, Algorithm::Tree});
        }
    }
    return table;
}

void CollectiveTable::set(const Entry& entry) {
    const auto known = algorithms_of(entry.kind);
    require(std::find(known.begin(), known.end(), entry.algorithm) != known.end(), "{} has no algorithm {}", name_of(entry.kind),
            name_of(entry.algorithm));
    const auto at =
        std::lower_bound(entries_.begin(), entries_.end(), entry, [](const Entry& a, const Entry& b) { return order(a) < order(b); });
    if (at != entries_.end() && order(*at) == order(entry))
        *at = entry;
    else
        entries_.insert(at, entry);
}

void CollectiveTable::replace(const CollectiveTable& other) {
    std::erase_if(entries_, [&](const Entry& mine) {
        return std::any_of(other.entries_.begin(), other.entries_.end(),
                           [&](const Entry& e) { return e.kind == mine.kind && e.one_node == mine.one_node; });
    });
    for (const Entry& e : other.entries_) set(e);
}

Algorithm CollectiveTable::choose(Traffic kind, int group_size, bool one_node, int64_t bytes) const {
    const Entry* best = nullptr;
    const auto distance = [&](const Entry& e) { return std::pair(e.one_node != one_node, std::abs(e.group_size - group_size)); };
    // Entries come by nodes, group size and bytes: in a group the first that reaches counts.
    for (const Entry& e : entries_) {
        if (e.kind != kind) continue;
        const bool nearer = !best || distance(e) < distance(*best) || (distance(e) == distance(*best) && e.group_size > best->group_size);
        const bool further = best && distance(e) == distance(*best) && e.group_size == best->group_size && best->up_to_bytes < bytes;
        if (nearer || further) best = &e;
    }
    return best ? best->algorithm : Algorithm::Library;
}

Json to_json(const CollectiveTable& table) {
    Json entries = Json::array();
    for (const auto& e : table.entries()) {
        entries.push_back({{"collective", name_of(e.kind)},
                           {"ranks", e.group_size},
                           {"nodes", e.one_node ? "one" : "several"},
                           {"up_to_bytes", e.up_to_bytes == kAnyBytes ? Json(nullptr) : Json(e.up_to_bytes)},
                           {"algorithm", name_of(e.algorithm)}});
    }
    return {{"entries", entries}};
}

CollectiveTable collective_table_from_json(const Json& json) {
    CollectiveTable table;
    try {
        for (const Json& e : json.at("entries")) {
            const Json& bytes = e.at("up_to_bytes");
            const std::string nodes = e.at("nodes");
            require(nodes == "one" || nodes == "several", "nodes is \"{}\", expected \"one\" or \"several\"", nodes);
            const CollectiveTable::Entry entry{traffic_named(e.at("collective").get<std::string>()), e.at("ranks").get<int>(),
                                               nodes == "one", bytes.is_null() ? kAnyBytes : bytes.get<int64_t>(),
                                               algorithm_named(e.at("algorithm").get<std::string>())};
            require(entry.group_size >= 1 && entry.up_to_bytes >= 0, "{} of {} ranks up to {} bytes is no entry", name_of(entry.kind),
                    entry.group_size, entry.up_to_bytes);
            table.set(entry);
        }
    } catch (const Json::exception& e) {
        fail(
            "the table of collectives is not as expected (\"entries\", each with \"collective\", \"ranks\", \"nodes\", \"up_to_bytes\" and "
            "\"algorithm\"): {}",
            fault_of(e));
    }
    return table;
}

}  // namespace convoy
