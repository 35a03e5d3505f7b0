#include "comm/collective.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace convoy {

namespace {

TEST(Collective, NamesGoBothWays) {
    for (int k = 0; k < kTrafficKinds; ++k) {
        const auto kind = static_cast<Traffic>(k);
        EXPECT_EQ(traffic_named(name_of(kind)), kind);
        for (const Algorithm algorithm : algorithms_of(kind)) EXPECT_EQ(algorithm_named(name_of(algorithm)), algorithm);
    }
    EXPECT_THROW(algorithm_named("ringo"), Error);
    EXPECT_THROW(traffic_named("allreduce"), Error);
}

TEST(Collective, PiecesAreAsEvenAsCanBe) {
    EXPECT_EQ(even_counts(7, 3), (std::vector<int64_t>{3, 2, 2}));
    EXPECT_EQ(even_counts(2, 4), (std::vector<int64_t>{1, 1, 0, 0}));
    EXPECT_EQ(offsets_of(std::vector<int64_t>{3, 0, 2}), (std::vector<int64_t>{0, 3, 3, 5}));
}

TEST(Collective, OptimalBytesAreTheTextbooks) {
    const std::vector<int64_t> even{25, 25, 25, 25};
    const CollectiveCall gather{.kind = Traffic::AllGather, .dtype = DType::f32, .counts = even};
    const CollectiveCall scatter{.kind = Traffic::ReduceScatter, .dtype = DType::f32, .counts = even};
    const CollectiveCall reduce{.kind = Traffic::AllReduce, .dtype = DType::f32, .count = 100};
    for (int place = 0; place < 4; ++place) {
        EXPECT_EQ(optimal_bytes(gather, place, 4), 300);
        EXPECT_EQ(optimal_bytes(scatter, place, 4), 300);
        EXPECT_EQ(optimal_bytes(reduce, place, 4), 600);
    }
}

}  // namespace

}  // namespace convoy
