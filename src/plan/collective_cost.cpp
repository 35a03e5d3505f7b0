#include "plan/collective_cost.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "base/error.h"

namespace convoy {

namespace {

using Kind = Collective::Kind;

int log2_up(int n) { return n <= 1 ? 0 : std::bit_width(static_cast<unsigned>(n - 1)); }

// The links as one group sees them. `flows` is how many ranks of a node send over the network at the same time, in all groups.
struct Links {
    const LinkKind &inside, &network;
    bool crosses;

    double latency() const { return crosses ? std::max(inside.latency, network.latency) : inside.latency; }
    static double per_byte(const LinkKind& link, int flows) { return (link.shared ? flows : 1) / link.bandwidth; }
    static double combine(const LinkKind& link) { return link.combine_bandwidth > 0 ? 1 / link.combine_bandwidth : 0; }
};

Links links_of(const Machine& machine, const GroupShape& group) {
    const NodeKind& node = machine.nodes[0];
    return {machine.links[static_cast<size_t>(node.inside)], machine.links[static_cast<size_t>(machine.network)],
            group.size > group.per_node};
}

TrafficCost finish(const Machine& machine, const Links& links, TrafficCost cost, const std::string& algorithm) {
    cost.link = links.crosses ? machine.network : machine.nodes[0].inside;
    const LinkKind& link = machine.links[static_cast<size_t>(cost.link)];
    cost.compute_share = link.compute_share;
    cost.latency *= link.in_step.latency;
    cost.transfer *= link.in_step.transfer;
    cost.algorithm = algorithm;
    return cost;
}

// Neighbours in a ring: in every step each rank passes one piece on, and of each group one leaves the node.
TrafficCost ring(const Links& l, const GroupShape& g, double bytes, int rounds, bool combines) {
    const double p = g.size;
    double beta = Links::per_byte(l.inside, g.per_node * g.groups_per_node);
    if (l.crosses) beta = std::max(g.per_node > 1 ? beta : 0, Links::per_byte(l.network, g.groups_per_node));
    const double gamma = combines ? Links::combine(l.crosses ? l.network : l.inside) : 0;
    return {.latency = rounds * (p - 1) * l.latency(), .transfer = (p - 1) / p * bytes * (rounds * beta + gamma)};
}

// Partners at doubling distances, near ones first. `bytes_at(i)` is what travels in the i-th step.
template <class BytesAt>
TrafficCost doubling(const Links& l, const GroupShape& g, const BytesAt& bytes_at, bool combines) {
    TrafficCost cost;
    const int steps = log2_up(g.size), near = log2_up(g.per_node);
    for (int i = 0; i < steps; ++i) {
        const bool leaves = l.crosses && i >= near;
        const LinkKind& link = leaves ? l.network : l.inside;
        cost.latency += link.latency;
        cost.transfer += bytes_at(i) * (Links::per_byte(link, g.per_node * g.groups_per_node) + (combines ? Links::combine(link) : 0));
    }
    return cost;
}

TrafficCost sum(const TrafficCost& a, const TrafficCost& b) {
    return {.latency = a.latency + b.latency, .transfer = a.transfer + b.transfer};
}

// More ranks than a power of two send all they have to a neighbour first and are told the result.
TrafficCost folding(const Links& l, const GroupShape& g, double bytes) {
    if (std::has_single_bit(static_cast<unsigned>(g.size))) return {};
    return {.latency = 2 * l.latency(),
            .transfer = 2 * bytes * Links::per_byte(l.crosses && g.per_node == 1 ? l.network : l.inside, g.groups_per_node)};
}

TrafficCost all_reduce(const Links& l, const GroupShape& g, double n, const std::string& algorithm) {
    if (algorithm == "ring") return ring(l, g, n, 2, true);
    if (algorithm == "recursive_doubling")
        return sum(folding(l, g, n), doubling(
                                         l, g, [&](int) { return n; }, true));
    if (algorithm == "rabenseifner") {
        const auto halves = [&](int i) { return std::ldexp(n, -i - 1); };
        return sum(folding(l, g, n), sum(doubling(l, g, halves, true), doubling(l, g, halves, false)));
    }
    if (algorithm == "tree") {
        GroupShape one = g;  // of a node only one rank sends over the network
        one.groups_per_node = std::max(1, g.groups_per_node / std::max(1, g.per_node));
        const auto whole = [&](int) { return n; };
        return sum(doubling(l, one, whole, true), doubling(l, one, whole, false));
    }
    // hierarchical: to one rank of each node, a ring among those, and back
    const GroupShape local{.size = g.per_node, .per_node = g.per_node, .groups_per_node = g.groups_per_node};
    const GroupShape leaders{.size = (g.size + g.per_node - 1) / g.per_node, .per_node = 1, .groups_per_node = g.groups_per_node};
    Links in = l;
    in.crosses = false;
    const auto whole = [&](int) { return n; };
    const TrafficCost inside = sum(doubling(in, local, whole, true), doubling(in, local, whole, false));
    return l.crosses ? sum(inside, ring(l, leaders, n, 2, true)) : inside;
}

TrafficCost gather_or_scatter(const Links& l, const GroupShape& g, double n, const std::string& algorithm, bool combines) {
    if (algorithm == "ring") return ring(l, g, n, 1, combines);
    if (algorithm == "bruck") {
        const double piece = n / g.size;
        return doubling(
            l, g, [&](int i) { return std::min(std::ldexp(piece, i), n - std::ldexp(piece, i)); }, combines);
    }
    // pairwise: everyone with everyone
    TrafficCost cost = ring(l, g, n, 1, combines);
    if (!l.crosses) return cost;
    const double far = static_cast<double>(g.size - g.per_node) / g.size * n;
    cost.transfer = std::max(cost.transfer, far * Links::per_byte(l.network, g.per_node * g.groups_per_node));
    return cost;
}

}  // namespace

std::string_view name_of(Kind kind) {
    constexpr std::string_view names[] = {"all_reduce", "reduce_scatter", "all_gather"};
    return names[static_cast<size_t>(kind)];
}

const std::vector<std::string>& collective_algorithms(Kind kind) {
    static const std::vector<std::string> reduce{"ring", "recursive_doubling", "rabenseifner", "tree", "hierarchical"};
    static const std::vector<std::string> scatter{"ring", "pairwise"}, gather{"ring", "pairwise", "bruck"};
    return kind == Kind::AllReduce ? reduce : kind == Kind::ReduceScatter ? scatter : gather;
}

TrafficCost collective_cost(const Machine& machine, Kind kind, int64_t bytes, const GroupShape& group, const std::string& algorithm) {
    const auto& known = collective_algorithms(kind);
    require(std::find(known.begin(), known.end(), algorithm) != known.end(), "{} has no algorithm \"{}\"; there are {}", name_of(kind),
            algorithm, fmt::join(known, ", "));
    if (group.size <= 1) return {};
    const Links links = links_of(machine, group);
    const auto n = static_cast<double>(bytes);
    const TrafficCost cost = kind == Kind::AllReduce ? all_reduce(links, group, n, algorithm)
                                                     : gather_or_scatter(links, group, n, algorithm, kind == Kind::ReduceScatter);
    return finish(machine, links, cost, algorithm);
}

namespace {

// Seconds at a size from samples by size: in proportion to the logarithms between two, straight on above the largest.
TrafficCost between(const std::map<int64_t, double>& samples, int64_t bytes) {
    const auto first = samples.begin();
    const double least = first->second;
    const auto above = samples.lower_bound(bytes);
    double seconds = 0;
    if (above == samples.begin()) {
        seconds = least;
    } else if (above == samples.end()) {
        const auto last = std::prev(samples.end());
        seconds = last->second * static_cast<double>(bytes) / static_cast<double>(last->first);
    } else {
        const auto below = std::prev(above);
        const double part = std::log(static_cast<double>(bytes) / static_cast<double>(below->first)) /
                            std::log(static_cast<double>(above->first) / static_cast<double>(below->first));
        seconds = std::exp((1 - part) * std::log(below->second) + part * std::log(above->second));
    }
    return {.latency = std::min(least, seconds), .transfer = std::max(0.0, seconds - least)};
}

std::map<int64_t, double> samples_of(const Machine& machine, std::string_view kind, const std::string& link, int ranks) {
    std::map<int64_t, double> fastest, taken;  // "auto" is what training takes
    for (const CollectiveSample& s : machine.collectives) {
        if (s.kind != kind || s.link != link || s.ranks != ranks) continue;
        const auto [at, fresh] = (s.algorithm == "auto" ? taken : fastest).emplace(s.bytes, s.seconds);
        if (!fresh) at->second = std::min(at->second, s.seconds);
    }
    return taken.empty() ? fastest : taken;
}

}  // namespace

std::optional<TrafficCost> measured_collective(const Machine& machine, Kind kind, int64_t bytes, const GroupShape& group) {
    if (machine.collectives.empty() || group.groups_per_node > 1) return std::nullopt;
    if (group.size > group.per_node && group.per_node > 1) return std::nullopt;
    const Links links = links_of(machine, group);
    const auto samples = samples_of(machine, name_of(kind), (links.crosses ? links.network : links.inside).name, group.size);
    if (samples.empty()) return std::nullopt;
    return finish(machine, links, between(samples, bytes), "measured");
}

TrafficCost exchange_cost(const Machine& machine, int messages, int64_t bytes, bool between_nodes, int senders_per_node) {
    const Links links = links_of(machine, {.size = 2, .per_node = between_nodes ? 1 : 2});
    const LinkKind& link = between_nodes ? links.network : links.inside;
    const auto samples = samples_of(machine, "exchange", link.name, 2);
    TrafficCost cost{.latency = link.latency, .transfer = static_cast<double>(bytes) * Links::per_byte(link, senders_per_node)};
    if (!samples.empty()) {
        cost = between(samples, bytes);
        if (link.shared) cost.transfer *= senders_per_node;
    }
    cost.latency *= messages;
    return finish(machine, links, cost, "messages");
}

}  // namespace convoy
