#include <algorithm>
#include <cstring>

#include "comm/algorithms/algorithms.h"

namespace convoy {

// Every place sends each of the others the piece it is to own and adds what comes for its own: own, then from place-1, place-2, and so on round.
void reduce_scatter_pairwise(const Team& team, const Elements& elements, const std::byte* in, std::byte* out,
                             std::span<const int64_t> counts) {
    const auto offsets = offsets_of(counts);
    const auto piece = [&](int p) { return in + offsets[static_cast<size_t>(p)] * elements.size; };
    const int64_t own = counts[static_cast<size_t>(team.place)];
    if (own > 0 && out != piece(team.place)) std::memcpy(out, piece(team.place), static_cast<size_t>(own * elements.size));
    for (int k = 1; k < team.size(); ++k) {
        const int to = (team.place + k) % team.size(), from = (team.place - k + team.size()) % team.size();
        send_pieces(team, elements, to, piece(to), counts[static_cast<size_t>(to)]);
        run(team, elements, {.peer = from, .data = out, .count = own});
    }
}

// In step k a place sends its sum so far of piece (place - k - 1) on and receives that of piece (place - k - 2), to which it adds its own part; the
// last one is its own piece. Two buffers: one is on its way out while the other comes in.
void reduce_scatter_ring(const Team& team, const Elements& elements, const std::byte* in, std::byte* out, std::span<const int64_t> counts) {
    const int p = team.size();
    const auto offsets = offsets_of(counts);
    const int64_t most = *std::max_element(counts.begin(), counts.end());
    const auto place = [&](int c) { return static_cast<size_t>((c % p + p) % p); };
    const std::byte* outgoing = in + offsets[place(team.place - 1)] * elements.size;
    for (int k = 0; k + 1 < p; ++k) {
        const size_t sent = place(team.place - k - 1), taken = place(team.place - k - 2);
        const int64_t bytes = counts[taken] * elements.size;
        std::byte* const buffer = team.steps.scratch(most * elements.size, k % 2);
        team.receive(team.place - 1, buffer, bytes);
        team.send(team.place + 1, outgoing, counts[sent] * elements.size);
        team.steps.wait_all();
        std::byte* const sum = k + 2 == p ? out : buffer;
        elements.combine(sum, buffer, in + offsets[taken] * elements.size, counts[taken]);
        outgoing = sum;
    }
}

}  // namespace convoy
