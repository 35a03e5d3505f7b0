#include "place/distribution.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/parse_json.h"

namespace convoy {

namespace {

int parts_of(const DimSplit& split, const Grid& grid) {
    int parts = 1;
    for (const int a : split.axes) parts *= grid.axes[static_cast<size_t>(a)].size;
    return parts;
}

Json dims_json(const Dims& dims) { return std::vector<int64_t>(dims.begin(), dims.end()); }

Dims dims_of(const Json& json) {
    Dims dims;
    for (const auto& v : json) dims.push_back(v.get<int64_t>());
    return dims;
}

}  // namespace

std::vector<int64_t> even_cuts(int64_t length, int parts) {
    CONVOY_CHECK(parts > 0 && length >= 0, "{} cut into {} parts", length, parts);
    std::vector<int64_t> cuts{0};
    for (int p = 0; p < parts; ++p) cuts.push_back(cuts.back() + length / parts + (p < length % parts));
    return cuts;
}

std::vector<int64_t> weighted_cuts(int64_t length, const std::vector<double>& weights) {
    double total = 0;
    for (const double w : weights) {
        require(std::isfinite(w) && w >= 0, "a weight of {}, expected a number that is not negative", w);
        total += w;
    }
    require(total > 0, "{} weights, none of them positive", weights.size());
    std::vector<int64_t> sizes;
    std::vector<size_t> order(weights.size());
    std::iota(order.begin(), order.end(), size_t{0});
    int64_t given = 0;
    for (const double w : weights) {
        sizes.push_back(static_cast<int64_t>(std::floor(static_cast<double>(length) * w / total)));
        given += sizes.back();
    }
    const auto remainder = [&](size_t i) { return static_cast<double>(length) * weights[i] / total - static_cast<double>(sizes[i]); };
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return remainder(a) > remainder(b); });
    for (size_t i = 0; given < length; i = (i + 1) % order.size())
        if (weights[order[i]] > 0) {
            ++sizes[order[i]];
            ++given;
        }
    std::vector<int64_t> cuts{0};
    for (const int64_t s : sizes) cuts.push_back(cuts.back() + s);
    return cuts;
}

DimSplit even_split(const Grid& grid, const Shape& shape, int dim, std::vector<int> axes) {
    DimSplit split{dim, std::move(axes), {}};
    split.cuts = even_cuts(shape[dim], parts_of(split, grid));
    return split;
}

void validate(const Distribution& d, const Grid& grid, const Shape& shape) {
    std::set<int> axes, dims;
    const auto use_axis = [&](int a) {
        require(a >= 0 && a < static_cast<int>(grid.axes.size()), "no axis {} on grid {}", a, to_string(grid));
        require(axes.insert(a).second, "axis \"{}\" is used twice for one tensor", grid.axes[static_cast<size_t>(a)].name);
    };
    for (const DimSplit& split : d.splits) {
        require(split.dim >= 0 && split.dim < shape.size(), "no dim {} to split in {}", split.dim, to_string(shape));
        require(dims.insert(split.dim).second, "dim {} of {} is split twice", split.dim, to_string(shape));
        for (const int a : split.axes) use_axis(a);
        const int parts = parts_of(split, grid);
        require(static_cast<int>(split.cuts.size()) == parts + 1 && split.cuts.front() == 0 && split.cuts.back() == shape[split.dim] &&
                    std::is_sorted(split.cuts.begin(), split.cuts.end()),
                "the cuts of dim {} must be {} ascending offsets from 0 to {}", split.dim, parts + 1, shape[split.dim]);
    }
    for (const int a : d.partial) use_axis(a);
    require((d.halo.lo.empty() || d.halo.lo.size() == shape.size()) && d.halo.lo.size() == d.halo.hi.size(), "a halo of {} dims for {}",
            d.halo.lo.size(), to_string(shape));
}

Box owned_box(const Distribution& d, const Grid& grid, const Shape& shape, Rank rank) {
    const auto place = grid.coordinates(rank);
    CONVOY_CHECK(place, "rank {} is not on grid {}", rank, to_string(grid));
    Box box{Dims::filled(shape.size(), 0), shape};
    for (const DimSplit& split : d.splits) {
        int64_t part = 0;
        for (const int a : split.axes) part = part * grid.axes[static_cast<size_t>(a)].size + (*place)[a];
        box.origin[split.dim] = split.cuts[static_cast<size_t>(part)];
        box.shape[split.dim] = split.cuts[static_cast<size_t>(part) + 1] - box.origin[split.dim];
    }
    return box;
}

Box held_box(const Distribution& d, const Grid& grid, const Shape& shape, Rank rank) {
    Box box = owned_box(d, grid, shape, rank);
    for (int i = 0; i < d.halo.lo.size(); ++i) {
        const int64_t end = std::min(shape[i], box.origin[i] + box.shape[i] + d.halo.hi[i]);
        box.origin[i] = std::max<int64_t>(0, box.origin[i] - d.halo.lo[i]);
        box.shape[i] = end - box.origin[i];
    }
    return box;
}

Json to_json(const Distribution& d) {
    Json splits = Json::array();
    for (const DimSplit& s : d.splits) splits.push_back({{"dim", s.dim}, {"axes", s.axes}, {"cuts", s.cuts}});
    Json json{{"grid", d.grid}, {"splits", splits}, {"partial", d.partial}};
    if (!d.halo.lo.empty()) json["halo"] = {{"lo", dims_json(d.halo.lo)}, {"hi", dims_json(d.halo.hi)}};
    return json;
}

Distribution distribution_from_json(const Json& json) {
    Distribution d;
    try {
        d.grid = json.at("grid");
        for (const auto& s : json.at("splits"))
            d.splits.push_back({s.at("dim"), s.at("axes").get<std::vector<int>>(), s.at("cuts").get<std::vector<int64_t>>()});
        d.partial = json.at("partial").get<std::vector<int>>();
        if (json.contains("halo")) d.halo = {dims_of(json["halo"].at("lo")), dims_of(json["halo"].at("hi"))};
    } catch (const Json::exception& e) {
        fail("a distribution needs \"grid\", \"splits\" (each with \"dim\", \"axes\", \"cuts\") and \"partial\": {}", fault_of(e));
    }
    return d;
}

}  // namespace convoy
