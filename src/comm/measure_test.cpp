#include "comm/measure.h"

#include <gtest/gtest.h>

#include "comm/thread_world.h"

namespace convoy {

namespace {

TEST(Measure, TimesEveryAlgorithmAndAgreesOnEveryRank) {
    ThreadWorld world(3);
    std::vector<std::vector<CollectiveTime>> times(3);
    run_ranks(world, [&](Transport& transport) {
        Channel channel(transport, Lane::Service);
        Communicator communicator(channel, {0, 1, 2});
        times[static_cast<size_t>(transport.rank())] = measure(communicator, {.bytes = {4096, 65536}, .seconds_each = 0.001});
    });
    EXPECT_EQ(times[0].size(), 2 * (6 + 3 + 4));
    for (size_t i = 0; i < times[0].size(); ++i) {
        EXPECT_GT(times[0][i].seconds, 0);
        EXPECT_EQ(times[0][i].seconds, times[1][i].seconds);
        EXPECT_EQ(times[0][i].seconds, times[2][i].seconds);
    }
    EXPECT_EQ(fastest(times[0]).entries().size(), 6U);
}

TEST(Measure, TheFastestWinsUnlessAnEarlierOneIsNear) {
    const auto table = fastest({{Traffic::AllReduce, 2, true, 100, Algorithm::Library, 2.0},
                                {Traffic::AllReduce, 2, true, 100, Algorithm::Ring, 1.0},
                                {Traffic::AllReduce, 2, true, 200, Algorithm::Library, 1.01},
                                {Traffic::AllReduce, 2, true, 200, Algorithm::Ring, 1.0}});
    EXPECT_EQ(table.choose(Traffic::AllReduce, 2, true, 100), Algorithm::Ring);
    EXPECT_EQ(table.choose(Traffic::AllReduce, 2, true, 200), Algorithm::Library);
}

}  // namespace

}  // namespace convoy
