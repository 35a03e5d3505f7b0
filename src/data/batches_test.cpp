#include "data/batches.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"

namespace convoy {
namespace {

std::vector<int64_t> copy(std::span<const int64_t> values) { return {values.begin(), values.end()}; }

std::vector<int64_t> epoch(BatchOrder& order, int64_t number) {
    std::vector<int64_t> all;
    for (int64_t b = 0; b < order.batches(); ++b)
        for (const int64_t i : order.indices({number, b})) all.push_back(i);
    return all;
}

TEST(BatchOrder, TheLastBatchHasWhatIsLeft) {
    BatchOrder order(10, 4, 1, false);
    EXPECT_EQ(order.batches(), 3);
    EXPECT_EQ(copy(order.indices({0, 1})), (std::vector<int64_t>{4, 5, 6, 7}));
    EXPECT_EQ(copy(order.indices({3, 2})), (std::vector<int64_t>{8, 9}));
    EXPECT_EQ(BatchOrder(8, 4, 1, false).batches(), 2);
    EXPECT_EQ(BatchOrder(3, 100, 1, false).batch_size(), 3);
    EXPECT_EQ(order.next({0, 1}), (BatchPosition{0, 2}));
    EXPECT_EQ(order.next({0, 2}), (BatchPosition{1, 0}));
}

TEST(BatchOrder, AnEpochIsThePermutationOfItsNumber) {
    BatchOrder order(103, 10, 7, true), again(103, 25, 7, true);
    for (const int64_t number : {int64_t{0}, int64_t{1}, int64_t{5}, int64_t{0}}) {
        auto all = epoch(order, number);
        EXPECT_EQ(all, permutation({7, static_cast<uint32_t>(number), stream_of("shuffle")}, 103));
        EXPECT_EQ(all, epoch(again, number));  // whatever the batch size
    }
    EXPECT_NE(epoch(order, 0), epoch(order, 1));
    BatchOrder other(103, 10, 8, true);
    EXPECT_NE(epoch(order, 0), epoch(other, 0));
}

TEST(BatchOrder, WithinAnEpochNothingIsRecomputed) {
    BatchOrder order(100, 10, 7, true);
    const int64_t* first = order.indices({2, 0}).data();
    EXPECT_EQ(order.indices({2, 9}).data(), first + 90);
    EXPECT_EQ(order.indices({2, 0}).data(), first);
}

TEST(BatchOrder, Refuses) {
    EXPECT_THROW(BatchOrder(0, 4, 1, true), Error);
    EXPECT_THROW(BatchOrder(4, 0, 1, true), Error);
    BatchOrder order(10, 4, 1, true);
    EXPECT_THROW(order.indices({0, 3}), Bug);
    EXPECT_THROW(order.indices({-1, 0}), Bug);
}

}  // namespace
}  // namespace convoy
