#include "place/grid.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/parse_json.h"

namespace convoy {

namespace {

Dims extents(const Grid& grid) {
    Dims dims;
    for (const Axis& axis : grid.axes) dims.push_back(axis.size);
    return dims;
}

constexpr int64_t kMostRanks = int64_t{1} << 31;  // more than anybody has, and its product with an int still fits

int whole_number(const Json& json, const char* what) {
    require(json.is_number_integer() && json >= 0 && json <= std::numeric_limits<int>::max(), "{} is {}, expected a whole number", what,
            json.is_structured() ? json.type_name() : json.dump(-1, ' ', false, Json::error_handler_t::replace));
    return json.get<int>();
}

}  // namespace

Grid Grid::single(Rank rank) { return {{}, {rank}}; }

Grid Grid::over(std::vector<Axis> axes, Rank first) {
    Grid grid{std::move(axes), {}};
    grid.ranks.resize(static_cast<size_t>(std::max<int64_t>(0, numel(extents(grid)))));
    std::iota(grid.ranks.begin(), grid.ranks.end(), first);
    validate(grid);
    return grid;
}

int Grid::place_of(Rank rank) const {
    if (ranks.empty()) return -1;
    const int guess = rank - ranks[0];
    if (guess >= 0 && guess < size() && ranks[static_cast<size_t>(guess)] == rank) return guess;
    const auto found = std::find(ranks.begin(), ranks.end(), rank);
    return found == ranks.end() ? -1 : static_cast<int>(found - ranks.begin());
}

std::optional<Dims> Grid::coordinates(Rank rank) const {
    const int place = place_of(rank);
    if (place < 0) return std::nullopt;
    Dims result = Dims::filled(static_cast<int>(axes.size()), 0);
    int64_t rest = place;
    for (int a = result.size() - 1; a >= 0; --a) {
        result[a] = rest % axes[static_cast<size_t>(a)].size;
        rest /= axes[static_cast<size_t>(a)].size;
    }
    return result;
}

Rank Grid::at(const Dims& coordinates) const {
    CONVOY_CHECK(coordinates.size() == static_cast<int>(axes.size()), "{} coordinates on {}", coordinates.size(), to_string(*this));
    int64_t index = 0;
    for (int a = 0; a < coordinates.size(); ++a) index = index * axes[static_cast<size_t>(a)].size + coordinates[a];
    return ranks[static_cast<size_t>(index)];
}

std::vector<Rank> Grid::group(Rank rank, const std::vector<int>& along) const {
    const auto own = coordinates(rank);
    CONVOY_CHECK(own, "rank {} is not on {}", rank, to_string(*this));
    // Along one axis after the other, slowest first: the places so far, each in all its positions along the axis.
    std::vector<size_t> places{0};
    for (int a = 0; a < own->size(); ++a) {
        const auto size = static_cast<size_t>(axes[static_cast<size_t>(a)].size);
        const bool varies = std::find(along.begin(), along.end(), a) != along.end();
        std::vector<size_t> next;
        next.reserve(places.size() * (varies ? size : 1));
        for (const size_t p : places)
            for (size_t c = 0; c < size; ++c)
                if (varies || c == static_cast<size_t>((*own)[a])) next.push_back(p * size + c);
        places = std::move(next);
    }
    std::vector<Rank> result;
    result.reserve(places.size());
    for (const size_t p : places) result.push_back(ranks[p]);
    return result;
}

void validate(const Grid& grid) {
    std::set<std::string> names;
    require(grid.axes.size() <= static_cast<size_t>(Dims::kMost), "a grid has {} axes, expected at most {}", grid.axes.size(), Dims::kMost);
    int64_t room = 1;
    for (const Axis& axis : grid.axes) {
        require(axis.size > 0, "grid {}: axis \"{}\" has size {}, expected at least 1", to_string(grid), axis.name, axis.size);
        require(names.insert(axis.name).second, "grid {}: axis \"{}\" stands there twice", to_string(grid), axis.name);
        room = std::min(room * axis.size, kMostRanks);
    }
    require(room == grid.size(), "grid {} has room for {}{} ranks, but {} are listed", to_string(grid), room,
            room == kMostRanks ? " or more" : "", grid.size());
    const std::set<Rank> distinct(grid.ranks.begin(), grid.ranks.end());
    require(static_cast<int>(distinct.size()) == grid.size(), "grid {} lists a rank twice", to_string(grid));
    require(distinct.empty() || *distinct.begin() >= 0, "grid {} lists the negative rank {}", to_string(grid), *distinct.begin());
}

std::string to_string(const Grid& grid) {
    std::string text;
    for (const Axis& axis : grid.axes) text += fmt::format("{}{}:{}", text.empty() ? "" : ",", axis.name, axis.size);
    return text.empty() ? "single" : text;
}

Json to_json(const Grid& grid) {
    Json axes = Json::array();
    for (const Axis& axis : grid.axes) axes.push_back({{"name", axis.name}, {"size", axis.size}});
    return {{"axes", axes}, {"ranks", grid.ranks}};
}

Grid grid_from_json(const Json& json) {
    Grid grid;
    try {
        for (const auto& axis : json.at("axes"))
            grid.axes.push_back({axis.at("name"), whole_number(axis.at("size"), "the size of an axis")});
        for (const auto& rank : json.at("ranks")) grid.ranks.push_back(whole_number(rank, "a rank"));
    } catch (const Json::exception& e) {
        fail("a grid needs \"axes\" (each with \"name\" and \"size\") and \"ranks\": {}", fault_of(e));
    }
    validate(grid);
    return grid;
}

}  // namespace convoy
