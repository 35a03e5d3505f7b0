#include <cstring>

#include "comm/algorithms/algorithms.h"

namespace convoy {

void all_to_all_pairwise(const Team& team, const std::byte* in, std::span<const int64_t> send_counts, std::byte* out,
                         std::span<const int64_t> receive_counts) {
    const auto to = offsets_of(send_counts), from = offsets_of(receive_counts);
    const auto own = static_cast<size_t>(team.place);
    for (int k = 1; k < team.size(); ++k) {
        const auto peer = static_cast<size_t>((team.place - k + team.size()) % team.size());
        team.receive(static_cast<int>(peer), out + from[peer], receive_counts[peer]);
    }
    for (int k = 1; k < team.size(); ++k) {
        const auto peer = static_cast<size_t>((team.place + k) % team.size());
        team.send(static_cast<int>(peer), in + to[peer], send_counts[peer]);
    }
    if (send_counts[own] > 0) std::memcpy(out + from[own], in + to[own], static_cast<size_t>(send_counts[own]));
    team.steps.wait_all();
}

// In step k every place tells the place 2^k above that all it has heard of have arrived.
void barrier_dissemination(const Team& team) {
    std::byte* const tokens = team.steps.scratch(2);
    tokens[0] = std::byte{1};
    for (int distance = 1; distance < team.size(); distance *= 2) {
        team.receive(team.place - distance, tokens + 1, 1);
        team.send(team.place + distance, tokens, 1);
        team.steps.wait_all();
    }
}

}  // namespace convoy
