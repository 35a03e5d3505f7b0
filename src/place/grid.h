// Grids: a set of ranks arranged along named axes, such as {sample: 4, height: 2}. A grid may hold any subset of the ranks of a run, in any order.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "tensor/dims.h"

namespace convoy {

using Rank = int;

struct Axis {
    std::string name;
    int size = 1;
    bool operator==(const Axis&) const = default;
};

struct Grid {
    std::vector<Axis> axes;   // slowest first
    std::vector<Rank> ranks;  // row-major over the axes

    // One rank, no axes.
    static Grid single(Rank rank = 0);
    // Ranks first, first+1, ... along these axes. Error when the axes are empty of ranks or share a name.
    static Grid over(std::vector<Axis> axes, Rank first = 0);

    int size() const { return static_cast<int>(ranks.size()); }
    // Where in `ranks` a rank stands, or -1. Takes no search where ranks count up, as they mostly do.
    int place_of(Rank rank) const;
    // The coordinates of a rank, or nothing when it is not in the grid.
    std::optional<Dims> coordinates(Rank rank) const;
    // The rank at these coordinates.
    Rank at(const Dims& coordinates) const;
    // The ranks that differ from `rank` only along these axes, in row-major order of those axes.
    std::vector<Rank> group(Rank rank, const std::vector<int>& along) const;

    bool operator==(const Grid&) const = default;
};

// Error says what is wrong: ranks that do not fill the axes, a rank twice, an axis twice.
void validate(const Grid& grid);

std::string to_string(const Grid& grid);
Json to_json(const Grid& grid);
Grid grid_from_json(const Json& json);

}  // namespace convoy
