#include "place/transfers.h"

#include <gtest/gtest.h>

#include <random>

#include "base/test_count.h"
#include "place/distribution.h"

namespace convoy {
namespace {

// Fills every wanted box element by element from the pieces, and counts how often each element arrives.
void expect_filled_once(const Holding& have, const Holding& want) {
    const auto pieces = transfers(have, want);
    for (Rank r = 0; r < 12; ++r) {
        std::vector<Piece> own;
        std::copy_if(pieces.begin(), pieces.end(), std::back_inserter(own), [&](const Piece& p) { return p.from == r || p.to == r; });
        EXPECT_EQ(transfers_of(r, have, want), own) << "rank " << r;
    }
    for (size_t i = 0; i < want.ranks.size(); ++i) {
        int64_t arrived = 0;
        for (const Piece& a : pieces) {
            if (a.to != want.ranks[i]) continue;
            arrived += numel(a.box.shape);
            EXPECT_TRUE(contains(want.boxes[i], a.box));
            bool held = false;
            for (size_t h = 0; h < have.ranks.size(); ++h) held = held || (have.ranks[h] == a.from && contains(have.boxes[h], a.box));
            EXPECT_TRUE(held);
            for (const Piece& b : pieces) {
                if (&a == &b || b.to != a.to) continue;
                EXPECT_TRUE(intersection(a.box, b.box).empty());
            }
        }
        EXPECT_EQ(arrived, numel(want.boxes[i].shape));
    }
}

TEST(Transfers, EveryElementArrivesOnceFromOneWhoHoldsIt) {
    std::mt19937 random(7);
    const auto draw = [&](int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(random); };
    for (int round = 0; round < test_count(200, 5000); ++round) {
        const Shape shape{draw(1, 7), draw(1, 7), draw(1, 7)};
        const auto holding = [&](int first) {
            const Grid grid = Grid::over({{"a", draw(1, 3)}, {"b", draw(1, 3)}}, first);
            Distribution d;
            if (draw(0, 3) > 0) d.splits.push_back(even_split(grid, shape, draw(0, 1), {0}));
            if (draw(0, 3) > 0) d.splits.push_back(even_split(grid, shape, 2, {1}));
            Holding h;
            for (const Rank r : grid.ranks) {
                h.ranks.push_back(r);
                h.boxes.push_back(owned_box(d, grid, shape, r));
            }
            return h;
        };
        expect_filled_once(holding(0), holding(draw(0, 2)));
    }
}

TEST(Transfers, WhatARankHoldsItKeeps) {
    const Holding have{{0, 1}, {{{0}, {8}}, {{0}, {8}}}}, want{{0, 1}, {{{0}, {5}}, {{3}, {5}}}};
    EXPECT_EQ(transfers(have, want), (std::vector<Piece>{{0, 0, {{0}, {5}}}, {1, 1, {{3}, {5}}}}));
}

TEST(Transfers, ReceiversAreSpreadOverReplicas) {
    const Box all{{0}, {4}};
    const Holding have{{0, 1}, {all, all}}, want{{2, 3}, {all, all}};
    EXPECT_EQ(transfers(have, want), (std::vector<Piece>{{0, 2, all}, {1, 3, all}}));
}

TEST(Transfers, NobodySendsToARankThatWantsNothing) {
    const Holding have{{0, 1}, {{{0}, {4}}, {{4}, {4}}}}, want{{0, 1, 2}, {{{0}, {8}}, {{2}, {0}}, {{6}, {0}}}};
    expect_filled_once(have, want);
    EXPECT_EQ(transfers_of(1, have, want), (std::vector<Piece>{{1, 0, {{4}, {4}}}}));
}

TEST(Transfers, HalosReachPastTheNeighbour) {
    const Holding have{{0, 1, 2}, {{{0}, {2}}, {{2}, {1}}, {{3}, {2}}}};
    const Holding want{{0, 1, 2}, {{{0}, {4}}, {{0}, {5}}, {{1}, {4}}}};
    expect_filled_once(have, want);
}

}  // namespace
}  // namespace convoy
