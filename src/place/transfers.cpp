#include "place/transfers.h"

#include <algorithm>

#include "base/error.h"

namespace convoy {

namespace {

// A box and all ranks that hold it, in ascending order.
struct Replicas {
    Box box;
    std::vector<Rank> ranks;
};

std::vector<Replicas> replicas_of(const Holding& have) {
    std::vector<Replicas> all;
    for (size_t i = 0; i < have.ranks.size(); ++i) {
        if (have.boxes[i].empty()) continue;
        const auto same = std::find_if(all.begin(), all.end(), [&](const Replicas& r) { return r.box == have.boxes[i]; });
        if (same == all.end())
            all.push_back({have.boxes[i], {have.ranks[i]}});
        else
            same->ranks.push_back(have.ranks[i]);
    }
    for (Replicas& r : all) std::sort(r.ranks.begin(), r.ranks.end());
    return all;
}

}  // namespace

namespace {

// Appends what the i-th receiver takes from these sources, which cover what it wants, ordered by sender.
void add_pieces(const std::vector<Replicas>& sources, const Holding& want, size_t i, std::vector<Piece>& pieces) {
    const Rank to = want.ranks[i];
    int64_t missing = numel(want.boxes[i].shape);
    const size_t first = pieces.size();
    for (const Replicas& source : sources) {
        const Box box = intersection(source.box, want.boxes[i]);
        if (box.empty()) continue;
        const bool own = std::binary_search(source.ranks.begin(), source.ranks.end(), to);
        const Rank from = own ? to : source.ranks[i * source.ranks.size() / want.ranks.size()];
        pieces.push_back({from, to, box});
        missing -= numel(box.shape);
    }
    CONVOY_CHECK(missing == 0, "rank {} wants {}, of which nobody holds {} elements", to, to_string(want.boxes[i]), missing);
    std::stable_sort(pieces.begin() + static_cast<std::ptrdiff_t>(first), pieces.end(),
                     [](const Piece& a, const Piece& b) { return a.from < b.from; });
}

bool meet(const Box& a, const Box& b) {
    if (a.empty() || b.empty()) return false;  // also where an empty one lies inside the other
    for (int d = 0; d < a.shape.size(); ++d)
        if (a.begin(d) >= b.end(d) || b.begin(d) >= a.end(d)) return false;
    return true;
}

}  // namespace

std::vector<Piece> transfers(const Holding& have, const Holding& want) {
    const std::vector<Replicas> sources = replicas_of(have);
    std::vector<Piece> pieces;
    for (size_t i = 0; i < want.ranks.size(); ++i) add_pieces(sources, want, i, pieces);
    return pieces;
}

std::vector<Piece> transfers_of(Rank rank, const Holding& have, const Holding& want) {
    const auto place_in = [&](const Holding& h) {
        const auto at = std::find(h.ranks.begin(), h.ranks.end(), rank);
        return at == h.ranks.end() ? h.ranks.size() : static_cast<size_t>(at - h.ranks.begin());
    };
    // Those who hold something of a box.
    const auto around = [&](const Box& box) {
        Holding near;
        for (size_t i = 0; i < have.ranks.size(); ++i)
            if (meet(have.boxes[i], box)) {
                near.ranks.push_back(have.ranks[i]);
                near.boxes.push_back(have.boxes[i]);
            }
        return replicas_of(near);
    };
    const size_t holder = place_in(have), receiver = place_in(want);
    const bool holds = holder < have.ranks.size() && !have.boxes[holder].empty();
    // Of what it holds, all who hold the same.
    const std::vector<Replicas> own = holds ? around(have.boxes[holder]) : std::vector<Replicas>{};
    std::vector<Piece> pieces;
    for (size_t i = 0; i < want.ranks.size(); ++i) {
        if (i == receiver) {
            add_pieces(around(want.boxes[i]), want, i, pieces);
        } else if (holds && meet(have.boxes[holder], want.boxes[i])) {
            for (const Replicas& source : own) {
                if (source.box != have.boxes[holder] || std::binary_search(source.ranks.begin(), source.ranks.end(), want.ranks[i]))
                    continue;
                if (source.ranks[i * source.ranks.size() / want.ranks.size()] != rank) continue;
                pieces.push_back({rank, want.ranks[i], intersection(source.box, want.boxes[i])});
            }
        }
    }
    return pieces;
}

}  // namespace convoy
