#include <algorithm>
#include <cstring>

#include "comm/algorithms/algorithms.h"

namespace convoy {

// In step k a place sends on what it received in the step before, piece by piece as it arrives.
void all_gather_ring(const Team& team, std::byte* out, std::span<const int64_t> counts) {
    const int p = team.size();
    const auto offsets = offsets_of(counts);
    struct Piece {
        int step;
        std::byte* data;
        int64_t bytes;
    };
    const auto pieces_of = [&](int step, int chunk) {
        const auto c = static_cast<size_t>((chunk % p + p) % p);
        std::vector<Piece> pieces;
        for (int64_t first = offsets[c]; first < offsets[c + 1]; first += team.steps.segment_bytes())
            pieces.push_back({step, out + first, std::min(team.steps.segment_bytes(), offsets[c + 1] - first)});
        return pieces;
    };
    std::vector<Piece> incoming;
    for (int step = 0; step + 1 < p; ++step)
        for (const Piece& piece : pieces_of(step, team.place - step - 1)) incoming.push_back(piece);
    std::vector<Steps::Index> received;
    for (const Piece& piece : incoming) received.push_back(team.receive(team.place - 1, piece.data, piece.bytes));
    for (const Piece& piece : pieces_of(0, team.place)) team.send(team.place + 1, piece.data, piece.bytes);
    for (size_t i = 0; i < incoming.size(); ++i) {
        team.steps.wait(received[i]);
        if (incoming[i].step + 2 < p) team.send(team.place + 1, incoming[i].data, incoming[i].bytes);
    }
    team.steps.wait_all();
}

void all_gather_pairwise(const Team& team, std::byte* out, std::span<const int64_t> counts) {
    const auto offsets = offsets_of(counts);
    for (int k = 1; k < team.size(); ++k) {
        const auto from = static_cast<size_t>((team.place - k + team.size()) % team.size());
        team.receive(static_cast<int>(from), out + offsets[from], counts[from]);
    }
    const auto own = static_cast<size_t>(team.place);
    for (int k = 1; k < team.size(); ++k) team.send(team.place + k, out + offsets[own], counts[own]);
    team.steps.wait_all();
}

// Scratch memory holds the pieces of place, place+1, ... in this order. In each step a place sends all it has, or as much as is missing there, to the
// place as many below, and so doubles what it has.
void all_gather_bruck(const Team& team, std::byte* out, std::span<const int64_t> counts) {
    const int p = team.size();
    const auto offsets = offsets_of(counts);
    const auto at = [&](int c) { return static_cast<size_t>((c % p + p) % p); };
    const auto bytes_from = [&](int first, int pieces) {  // of so many pieces from place `first` on, round the end
        int64_t bytes = 0;
        for (int i = 0; i < pieces; ++i) bytes += counts[at(first + i)];
        return bytes;
    };
    std::byte* const turned = team.steps.scratch(offsets.back());
    const auto copy_bytes = [](std::byte* dst, const std::byte* src, int64_t bytes) {
        if (bytes > 0) std::memcpy(dst, src, static_cast<size_t>(bytes));
    };
    copy_bytes(turned, out + offsets[at(team.place)], counts[at(team.place)]);
    for (int have = 1; have < p; have *= 2) {
        const int pieces = std::min(have, p - have);
        team.receive(team.place + have, turned + bytes_from(team.place, have), bytes_from(team.place + have, pieces));
        team.send(team.place - have, turned, bytes_from(team.place, pieces));
        team.steps.wait_all();
    }
    const int64_t before_end = offsets.back() - offsets[at(team.place)];
    copy_bytes(out + offsets[at(team.place)], turned, before_end);
    copy_bytes(out, turned + before_end, offsets[at(team.place)]);
}

}  // namespace convoy
