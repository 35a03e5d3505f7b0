#include "plan/cost.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/error.h"

namespace convoy {
namespace {

// Every rank on a node of its own: one class of links.
Machine flat(double latency, double bandwidth, double combine) {
    Machine machine = machine_preset("v100");
    machine.nodes[0].devices = 1;
    machine.links[1] = {.name = "wire", .latency = latency, .bandwidth = bandwidth, .shared = true, .combine_bandwidth = combine};
    return machine;
}

TEST(Cost, CollectivesFollowTheTextbook) {
    const double a = 1e-5, b = 1e-9, c = 2e-10;
    const Machine machine = flat(a, 1 / b, 1 / c);
    const CostModel costs(machine, {.ranks = 16});
    const double n = 1 << 20;
    const GroupShape group{.size = 16};
    const auto seconds = [&](Collective::Kind kind, const char* algorithm) {
        return costs.collective(kind, static_cast<int64_t>(n), group, algorithm).seconds();
    };
    using Kind = Collective::Kind;
    EXPECT_NEAR(seconds(Kind::AllReduce, "ring"), 30 * a + 2 * 15 / 16.0 * n * b + 15 / 16.0 * n * c, 1e-12);
    EXPECT_NEAR(seconds(Kind::AllReduce, "rabenseifner"), 8 * a + 2 * 15 / 16.0 * n * b + 15 / 16.0 * n * c, 1e-12);
    EXPECT_NEAR(seconds(Kind::AllReduce, "recursive_doubling"), 4 * (a + n * b + n * c), 1e-12);
    EXPECT_NEAR(seconds(Kind::AllReduce, "tree"), 8 * (a + n * b) + 4 * n * c, 1e-12);
    EXPECT_NEAR(seconds(Kind::AllGather, "ring"), 15 * a + 15 / 16.0 * n * b, 1e-12);
    EXPECT_NEAR(seconds(Kind::AllGather, "bruck"), 4 * a + 15 / 16.0 * n * b, 1e-12);
    EXPECT_NEAR(seconds(Kind::ReduceScatter, "ring"), 15 * a + 15 / 16.0 * n * (b + c), 1e-12);
    EXPECT_THROW(seconds(Kind::ReduceScatter, "tree"), Error);
}

TEST(Cost, TheChoiceIsTheFastestAndChangesWithSize) {
    const Machine machine = flat(1e-5, 1e9, 5e9);
    const CostModel costs(machine, {.ranks = 16});
    using Kind = Collective::Kind;
    const GroupShape group{.size = 16};
    EXPECT_EQ(costs.collective(Kind::AllReduce, 64, group).algorithm, "recursive_doubling");
    EXPECT_EQ(costs.collective(Kind::AllReduce, 64 << 20, group).algorithm, "rabenseifner");
}

TEST(Cost, TrafficTakesLongerInAStepThanByItself) {
    Machine machine = flat(1e-5, 1e9, 5e9);
    const auto cost = [&] {
        return CostModel(machine, {.ranks = 16}).collective(Collective::Kind::AllReduce, 1 << 20, {.size = 16}, "ring");
    };
    const TrafficCost alone = cost();
    machine.links[1].in_step = {.latency = 4, .transfer = 2.5};
    EXPECT_NEAR(cost().latency, 4 * alone.latency, 1e-12);
    EXPECT_NEAR(cost().transfer, 2.5 * alone.transfer, 1e-12);
}

TEST(Cost, GroupsOnOneNodeShareItsNetworkCard) {
    const Machine machine = machine_preset("v100");
    const CostModel costs(machine, {.ranks = 16});
    EXPECT_EQ(costs.shape_of_group({0, 4, 8, 12}), (GroupShape{.size = 4, .per_node = 1, .groups_per_node = 4}));
    EXPECT_EQ(costs.shape_of_group({0, 1, 2, 3}), (GroupShape{.size = 4, .per_node = 4, .groups_per_node = 1}));
    const double alone = costs.collective(Collective::Kind::AllReduce, 64 << 20, {4, 1, 1}).transfer;
    const double shared = costs.collective(Collective::Kind::AllReduce, 64 << 20, {4, 1, 4}).transfer;
    EXPECT_NEAR(shared, 4 * alone, 1e-9);
}

KernelSample sample(double work, double seconds, int busy = 1) {
    return {.shape = {"conv 3x3, f32, direct", work, work / 100, {work}}, .busy = busy, .seconds = seconds};
}

TEST(Cost, KernelsComeFromTheTableThenFromItsNeighboursThenFromTheRoofline) {
    Machine machine = machine_preset("cpu10g");
    for (double work = 1e6; work < 1e10; work *= 4) machine.kernels.push_back(sample(work, work / 40e9));
    const CostModel costs(machine, {.ranks = 1, .threads = 1});
    const auto known = costs.kernel(machine.kernels[2].shape, DType::f32);
    EXPECT_EQ(known.source, CostSource::Measured);
    EXPECT_EQ(known.seconds, machine.kernels[2].seconds);
    const auto between = costs.kernel(sample(7e8, 0).shape, DType::f32);
    EXPECT_EQ(between.source, CostSource::Interpolated);
    EXPECT_NEAR(between.seconds, 7e8 / 40e9, 0.05 * between.seconds);
    EXPECT_LT(between.error, 0.1);
    const auto unknown = costs.kernel({"softmax, f32", 1e6, 1e6, {}}, DType::f32);
    EXPECT_EQ(unknown.source, CostSource::Roofline);
    EXPECT_GT(unknown.seconds, 0);
}

// A kernel that transforms its weights at every call does not take half the time for half the samples.
TEST(Cost, KernelsAreSumsOfWhatTheyDo) {
    Machine machine = machine_preset("cpu10g");
    const auto conv = [](double samples, double channels, double positions) {
        const double elements = samples * channels * positions, weights = 9 * channels * channels, work = 2 * weights * samples * positions;
        return KernelSample{.shape = {"conv 3x3, f32, winograd",
                                      work,
                                      4 * (2 * elements + weights),
                                      {samples, channels, positions, samples, channels, positions}},
                            .seconds = 1e-6 + work / 200e9 + weights / 1e9 + elements / 2e9};
    };
    for (const auto& [channels, positions] : {std::pair{64.0, 784.0}, {128.0, 196.0}, {256.0, 49.0}, {512.0, 16.0}})
        for (const double samples : {8.0, 32.0}) machine.kernels.push_back(conv(samples, channels, positions));
    const CostModel costs(machine, {.ranks = 1, .threads = 1});
    for (const auto& asked : {conv(4, 512, 16), conv(1, 256, 49), conv(16, 64, 784), conv(8, 192, 100)})
        EXPECT_NEAR(costs.kernel(asked.shape, DType::f32).seconds, asked.seconds, 0.03 * asked.seconds);
}

TEST(Cost, BusyNeighboursHaveTheirOwnMeasurements) {
    Machine machine = machine_preset("cpu10g");
    machine.kernels = {sample(1e8, 1e-3, 1), sample(1e8, 2e-3, 2)};
    EXPECT_EQ(CostModel(machine, {.ranks = 1, .threads = 1}).kernel(machine.kernels[0].shape, DType::f32).seconds, 1e-3);
    EXPECT_EQ(CostModel(machine, {.ranks = 2, .threads = 1}).kernel(machine.kernels[0].shape, DType::f32).seconds, 2e-3);
}

}  // namespace
}  // namespace convoy
