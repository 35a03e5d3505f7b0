#include "comm/collective.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string>

#include "base/error.h"
#include "base/suggest.h"

namespace convoy {

namespace {

// In the order of the enumerations.
constexpr std::array<std::string_view, kTrafficKinds> kTraffic{"all_reduce", "reduce_scatter", "all_gather", "all_to_all",
                                                               "broadcast",  "barrier",        "transfer"};
constexpr std::array<std::string_view, 3> kReduce{"sum", "max", "min"};
constexpr std::array<std::string_view, 9> kAlgorithms{"auto",         "library",  "ring", "recursive_doubling", "rabenseifner", "tree",
                                                      "hierarchical", "pairwise", "bruck"};

template <class Enum, size_t N>
Enum named(std::string_view what, std::string_view name, const std::array<std::string_view, N>& names) {
    for (size_t i = 0; i < N; ++i)
        if (names[i] == name) return static_cast<Enum>(i);
    const std::vector<std::string> known(names.begin(), names.end());
    fail("unknown {} \"{}\"; expected one of {}{}", what, name, fmt::join(known, ", "), did_you_mean(name, known));
}

int64_t total(std::span<const int64_t> counts) { return std::accumulate(counts.begin(), counts.end(), int64_t{0}); }

// Elements sent, see optimal_bytes.
int64_t optimal_elements(const CollectiveCall& call, int place, int size) {
    const auto at = static_cast<size_t>(place);
    switch (call.kind) {
        case Traffic::AllReduce: {  // every piece goes to its owner, and comes back from there
            const int64_t own = even_counts(call.count, size)[at];
            return call.count - own + (size - 1) * own;
        }
        case Traffic::ReduceScatter: return total(call.counts) - call.counts[at];
        case Traffic::AllGather: return (size - 1) * call.counts[at];
        case Traffic::AllToAll: return total(call.counts) - call.counts[at];
        case Traffic::Broadcast: return (place + 1) % size == call.root ? 0 : call.count;  // handed on from place to place
        case Traffic::Barrier:
        case Traffic::Transfer: break;
    }
    return 0;
}

}  // namespace

std::string_view name_of(Traffic kind) { return kTraffic[static_cast<size_t>(kind)]; }
std::string_view name_of(ReduceOp op) { return kReduce[static_cast<size_t>(op)]; }
std::string_view name_of(Algorithm algorithm) { return kAlgorithms[static_cast<size_t>(algorithm)]; }
Traffic traffic_named(std::string_view name) { return named<Traffic>("collective", name, kTraffic); }
Algorithm algorithm_named(std::string_view name) { return named<Algorithm>("algorithm", name, kAlgorithms); }

std::vector<Algorithm> algorithms_of(Traffic kind) {
    using enum Algorithm;
    switch (kind) {
        case Traffic::AllReduce: return {Library, Ring, RecursiveDoubling, Rabenseifner, Tree, Hierarchical};
        case Traffic::ReduceScatter: return {Library, Ring, Pairwise};
        case Traffic::AllGather: return {Library, Ring, Pairwise, Bruck};
        case Traffic::AllToAll: return {Library, Pairwise};
        case Traffic::Broadcast: return {Library, Tree};
        case Traffic::Barrier: return {Library, RecursiveDoubling};
        case Traffic::Transfer: break;
    }
    return {};
}

int64_t bytes_of(const CollectiveCall& call) {
    const bool one_count = call.kind == Traffic::AllReduce || call.kind == Traffic::Broadcast;
    return (one_count ? call.count : total(call.counts)) * size_of(call.dtype);
}

int64_t optimal_bytes(const CollectiveCall& call, int place, int size) { return optimal_elements(call, place, size) * size_of(call.dtype); }

std::vector<int64_t> offsets_of(std::span<const int64_t> counts) {
    std::vector<int64_t> offsets(counts.size() + 1, 0);
    std::partial_sum(counts.begin(), counts.end(), offsets.begin() + 1);
    return offsets;
}

std::vector<int64_t> even_counts(int64_t count, int parts) {
    std::vector<int64_t> counts(static_cast<size_t>(parts), count / parts);
    std::for_each(counts.begin(), counts.begin() + count % parts, [](int64_t& c) { ++c; });
    return counts;
}

}  // namespace convoy
