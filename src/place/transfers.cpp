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

std::vector<Piece> transfers(const Holding& have, const Holding& want) {
    const std::vector<Replicas> sources = replicas_of(have);
    std::vector<Piece> pieces;
    for (size_t i = 0; i < want.ranks.size(); ++i) {
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
    return pieces;
}

}  // namespace convoy
