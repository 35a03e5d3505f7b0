// Seconds of collectives in the latency-bandwidth-combining model: p ranks, n bytes, links inside a node and between nodes. Internal to this module.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/cost.h"

namespace convoy {

// Those that there is a formula for.
const std::vector<std::string>& collective_algorithms(Collective::Kind kind);
std::string_view name_of(Collective::Kind kind);

// Error when the kind has no such algorithm.
TrafficCost collective_cost(const Machine& machine, Collective::Kind kind, int64_t bytes, const GroupShape& group,
                            const std::string& algorithm);
TrafficCost exchange_cost(const Machine& machine, int messages, int64_t bytes, bool between_nodes, int senders_per_node);
// What was measured between as many ranks over the same links, the fastest of all algorithms; between two sizes in proportion. Nothing where nobody measured.
std::optional<TrafficCost> measured_collective(const Machine& machine, Collective::Kind kind, int64_t bytes, const GroupShape& group);

}  // namespace convoy
