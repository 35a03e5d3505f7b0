#include <gtest/gtest.h>

#include "base/error.h"
#include "base/json.h"
#include "place/distribution.h"

namespace convoy {
namespace {

TEST(Grid, CoordinatesAndGroups) {
    const Grid grid = Grid::over({{"sample", 2}, {"height", 3}}, 10);
    EXPECT_EQ(grid.size(), 6);
    EXPECT_EQ(grid.coordinates(14), (Dims{1, 1}));
    EXPECT_FALSE(grid.coordinates(3).has_value());
    for (const Rank r : grid.ranks) EXPECT_EQ(grid.at(*grid.coordinates(r)), r);
    EXPECT_EQ(grid.group(14, {1}), (std::vector<Rank>{13, 14, 15}));
    EXPECT_EQ(grid.group(14, {0}), (std::vector<Rank>{11, 14}));
    EXPECT_EQ(grid.group(14, {0, 1}), grid.ranks);
    EXPECT_EQ(grid_from_json(to_json(grid)), grid);
    EXPECT_EQ(to_string(grid), "sample:2,height:3");
}

TEST(Grid, BadGridsAreRefused) {
    EXPECT_THROW(Grid::over({{"a", 2}, {"a", 2}}), Error);
    EXPECT_THROW(Grid::over({{"a", 0}}), Error);
    EXPECT_THROW(validate(Grid{{{"a", 2}}, {1}}), Error);
    EXPECT_THROW(validate(Grid{{{"a", 2}}, {1, 1}}), Error);
    EXPECT_THROW(grid_from_json(Json::parse(R"({"axes": [{"name": "a"}], "ranks": [0]})")), Error);
}

TEST(Cuts, EvenAndWeighted) {
    EXPECT_EQ(even_cuts(7, 3), (std::vector<int64_t>{0, 3, 5, 7}));
    EXPECT_EQ(even_cuts(2, 4), (std::vector<int64_t>{0, 1, 2, 2, 2}));
    EXPECT_EQ(weighted_cuts(10, {1, 3}), (std::vector<int64_t>{0, 3, 10}));  // 2.5 and 7.5: the first of equal remainders gets one more
    EXPECT_EQ(weighted_cuts(5, {1, 0, 1}), (std::vector<int64_t>{0, 3, 3, 5}));
    EXPECT_THROW(weighted_cuts(5, {0, 0}), Error);
    EXPECT_THROW(weighted_cuts(5, {1, -1}), Error);
}

// Over all small grids: the owned boxes of the ranks tile the tensor, each element exactly once for every combination of replicated axes.
TEST(Distribution, BoxesTileTheTensor) {
    const Shape shape{7, 3, 5};
    for (int a = 1; a <= 3; ++a)
        for (int b = 1; b <= 4; ++b)
            for (int dim_a = 0; dim_a < 3; ++dim_a)
                for (int dim_b = -1; dim_b < 3; ++dim_b) {
                    const Grid grid = Grid::over({{"a", a}, {"b", b}});
                    Distribution d;
                    if (dim_a == dim_b) {
                        d.splits = {even_split(grid, shape, dim_a, {1, 0})};
                    } else {
                        d.splits = {even_split(grid, shape, dim_a, {0})};
                        if (dim_b >= 0) d.splits.push_back(even_split(grid, shape, dim_b, {1}));
                    }
                    validate(d, grid, shape);
                    EXPECT_EQ(distribution_from_json(to_json(d)), d);
                    std::vector<int> owners(static_cast<size_t>(numel(shape)), 0);
                    for (const Rank r : grid.ranks) {
                        const Box box = owned_box(d, grid, shape, r);
                        for (int64_t i = 0; i < box.shape[0]; ++i)
                            for (int64_t j = 0; j < box.shape[1]; ++j)
                                for (int64_t k = 0; k < box.shape[2]; ++k)
                                    ++owners[static_cast<size_t>(((box.origin[0] + i) * 3 + box.origin[1] + j) * 5 + box.origin[2] + k)];
                    }
                    for (const int count : owners) EXPECT_EQ(count, dim_b < 0 ? b : 1);
                }
}

TEST(Distribution, HaloStaysInside) {
    const Grid grid = Grid::over({{"h", 3}});
    const Shape shape{1, 1, 8};
    const Distribution d{.splits = {even_split(grid, shape, 2, {0})}, .halo = {{0, 0, 2}, {0, 0, 1}}};
    EXPECT_EQ(held_box(d, grid, shape, 0), (Box{{0, 0, 0}, {1, 1, 4}}));
    EXPECT_EQ(held_box(d, grid, shape, 1), (Box{{0, 0, 1}, {1, 1, 6}}));
    EXPECT_EQ(held_box(d, grid, shape, 2), (Box{{0, 0, 4}, {1, 1, 4}}));
    EXPECT_EQ(distribution_from_json(to_json(d)), d);
    EXPECT_EQ(intersection(owned_box(d, grid, shape, 1), held_box(d, grid, shape, 2)), (Box{{0, 0, 4}, {1, 1, 2}}));
}

TEST(Distribution, MisfitsAreRefused) {
    const Grid grid = Grid::over({{"h", 2}});
    const Shape shape{4, 4};
    EXPECT_THROW(validate({.splits = {{2, {0}, {0, 2, 4}}}}, grid, shape), Error);
    EXPECT_THROW(validate({.splits = {{0, {1}, {0, 2, 4}}}}, grid, shape), Error);
    EXPECT_THROW(validate({.splits = {{0, {0}, {0, 2, 5}}}}, grid, shape), Error);
    EXPECT_THROW(validate({.splits = {{0, {0}, {0, 2, 4}}}, .partial = {0}}, grid, shape), Error);
}

}  // namespace
}  // namespace convoy
