// Distributions: how one tensor lies on a grid. Along each axis of the grid it is split along one of its dims, partial (a sum not yet reduced), or
// replicated. Splits are ordered and their cuts explicit, so that uneven and weighted parts are ordinary; a part may be empty.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "place/grid.h"
#include "tensor/box.h"

namespace convoy {

struct DimSplit {
    int dim = 0;
    std::vector<int> axes;      // of the grid, major first: two axes may split one dim
    std::vector<int64_t> cuts;  // parts + 1 offsets, from 0 to the length of the dim
    bool operator==(const DimSplit&) const = default;
};

// Rows of the neighbours that a part also holds, per dim; empty means none.
struct Halo {
    Dims lo, hi;
    bool operator==(const Halo&) const = default;
};

struct Distribution {
    int grid = 0;  // index into the plan's grids
    std::vector<DimSplit> splits;
    std::vector<int> partial;  // axes along which the tensor is a sum not yet reduced
    Halo halo;
    bool operator==(const Distribution&) const = default;
};

// Offsets that cut `length` into `parts`, the first length % parts of which are longer by one.
std::vector<int64_t> even_cuts(int64_t length, int parts);
// Offsets in proportion to the weights (largest remainder first); a part of weight 0 is empty. Error when no weight is positive.
std::vector<int64_t> weighted_cuts(int64_t length, const std::vector<double>& weights);

// A split of one dim over the given axes into even parts.
DimSplit even_split(const Grid& grid, const Shape& shape, int dim, std::vector<int> axes);

// Error when the distribution does not fit: a dim or axis that is not there or used twice, cuts that do not cover the dim.
void validate(const Distribution& distribution, const Grid& grid, const Shape& shape);

// What `rank` owns, without halo. Bug when the rank is not on the grid.
Box owned_box(const Distribution& distribution, const Grid& grid, const Shape& shape, Rank rank);
// What `rank` holds: its box grown by the halo, inside the tensor.
Box held_box(const Distribution& distribution, const Grid& grid, const Shape& shape, Rank rank);
Json to_json(const Distribution& distribution);
Distribution distribution_from_json(const Json& json);

}  // namespace convoy
