// A change of placement, as a list of boxes that travel. Who holds what is given by boxes, one for each rank of a grid; a box may be held by several
// ranks (replicas) and may be empty.
#pragma once

#include <vector>

#include "place/grid.h"
#include "tensor/box.h"

namespace convoy {

// What the ranks hold of one tensor, or are to hold.
struct Holding {
    std::vector<Rank> ranks;
    std::vector<Box> boxes;  // one for each of the ranks
};

struct Piece {
    Rank from = 0, to = 0;
    Box box;
    bool operator==(const Piece&) const = default;
};

// The pieces that fill every wanted box from what is held, ordered by receiver, then sender. A rank takes what it holds itself first (from == to);
// of several replicas elsewhere, receivers are spread over all. The held boxes must be disjoint or equal, and cover what is wanted.
std::vector<Piece> transfers(const Holding& have, const Holding& want);
// Of those the ones that this rank sends or receives, in the same order; with time in proportion to the number of ranks.
std::vector<Piece> transfers_of(Rank rank, const Holding& have, const Holding& want);

}  // namespace convoy
