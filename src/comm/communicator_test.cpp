#include "comm/communicator.h"

#include <gtest/gtest.h>

#include "base/test_count.h"
#include "comm/testing.h"
#include "comm/thread_world.h"

namespace convoy {

namespace {

using testing_comm::all_checks;
using testing_comm::run_check;

std::vector<Rank> everybody(int size) {
    std::vector<Rank> group;
    for (Rank r = 0; r < size; ++r) group.push_back(r);
    return group;
}

class AnyRankCount : public ::testing::TestWithParam<int> {};

TEST_P(AnyRankCount, EveryCollectiveByEveryAlgorithmInEveryType) {
    const std::vector<int64_t> sizes =
        test_count(0, 1) ? std::vector<int64_t>{0, 1, 2, 7, 64, 1000, 4099, 20001} : std::vector<int64_t>{0, 1, 7, 515};
    for (const int64_t count : sizes) {
        ThreadWorld world(GetParam());
        run_ranks(world, [&](Transport& transport) {
            Channel channel(transport, Lane::Gradient);
            Communicator communicator(channel, everybody(transport.size()));
            for (const auto& check : all_checks(count, static_cast<uint64_t>(count) * 1000)) run_check(communicator, check);
        });
    }
}

INSTANTIATE_TEST_SUITE_P(Ranks, AnyRankCount, ::testing::Values(1, 2, 3, 4, 5, 6, 7, 8));

// Vectors of many pieces, so that pieces overlap, and no multiple of one; pieces of one element as well.
TEST(Communicator, LargeVectorsGoInPieces) {
    for (const int size : {2, 3, 4, 6}) {
        ThreadWorld world(size);
        run_ranks(world, [&](Transport& transport) {
            Channel channel(transport, Lane::Gradient);
            Communicator communicator(channel, everybody(size));
            for (const int64_t bytes : {8, 400, 1024}) {
                communicator.set_segment_bytes(bytes);
                for (const auto& check : all_checks(bytes == 8 ? 100 : test_count(1500, 5003), 5)) run_check(communicator, check);
            }
        });
    }
}

TEST(Communicator, HierarchiesOfAnyShape) {
    for (const int per_node : {1, 2, 3, 4, 5}) {
        ThreadWorld world(6, per_node);  // 3: even nodes; 4, 5: uneven ones
        run_ranks(world, [&](Transport& transport) {
            Channel channel(transport, Lane::Gradient);
            Communicator all(channel, everybody(6));
            for (const auto& check : all_checks(300, 9))
                if (check.algorithm == Algorithm::Hierarchical) run_check(all, check);
        });
    }
}

// Groups in any order of ranks, disjoint ones at the same time, on two lanes at the same time.
TEST(Communicator, GroupsAndLanesDoNotDisturbEachOther) {
    const std::vector<std::vector<Rank>> groups{{4, 0, 2}, {1, 5}, {3}};
    ThreadWorld world(6);
    run_ranks(world, [&](Transport& transport) {
        Channel activation(transport, Lane::Activation), gradient(transport, Lane::Gradient);
        std::vector<Communicators::Wanted> wanted{{&gradient, everybody(6)}, {&activation, everybody(6)}};
        std::vector<Rank> mine;
        for (const auto& group : groups)
            if (std::count(group.begin(), group.end(), transport.rank())) mine = group;
        wanted.emplace_back(&activation, mine);
        wanted.emplace_back(&gradient, mine);
        const Communicators all(wanted);
        const auto work = [&](Channel& channel, uint64_t seed) {
            for (const auto& check : all_checks(40, seed)) {
                run_check(all.at(channel, mine), check);
                if (check.seed % 5 == 0) run_check(all.at(channel, everybody(6)), check);
            }
        };
        std::thread other([&] {
            try {
                work(activation, 100);
            } catch (const std::exception& e) {
                transport.fail_all(e.what());
            }
        });
        try {
            work(gradient, 200);
        } catch (const std::exception& e) {
            transport.fail_all(e.what());
        }
        other.join();
    });
}

TEST(Communicator, NotANumberHasTheSameBitsEverywhere) {
    ThreadWorld world(4);
    run_ranks(world, [&](Transport& transport) {
        Channel channel(transport, Lane::Gradient);
        Communicator communicator(channel, everybody(4));
        for (const Algorithm algorithm : algorithms_of(Traffic::AllReduce)) {
            uint32_t word = 0x7FC00000U + static_cast<uint32_t>(transport.rank());  // a different NaN from each rank
            auto* const data = reinterpret_cast<std::byte*>(&word);
            communicator.all_reduce(data, 1, DType::f32, ReduceOp::Sum, algorithm);
            uint32_t first = word;
            communicator.broadcast(reinterpret_cast<std::byte*>(&first), 1, DType::i32, 0);
            require(first == word, "by {}: {:x} and {:x}", name_of(algorithm), first, word);
        }
    });
}

TEST(Communicator, CountsBytesByLayerAndKind) {
    ThreadWorld world(4);
    run_ranks(world, [&](Transport& transport) {
        Channel channel(transport, Lane::Gradient);
        Communicator communicator(channel, everybody(4));
        std::vector<float> whole(100, 1.0f), piece(25);
        const std::vector<int64_t> counts(4, 25);
        auto* const data = reinterpret_cast<std::byte*>(whole.data());
        auto* const part = reinterpret_cast<std::byte*>(piece.data());
        for (const Algorithm algorithm : {Algorithm::Library, Algorithm::Ring, Algorithm::Rabenseifner}) {
            const LabelScope label(channel, name_of(algorithm));
            communicator.all_reduce(data, 100, DType::f32, ReduceOp::Sum, algorithm);
        }
        for (const Algorithm algorithm : {Algorithm::Library, Algorithm::Ring, Algorithm::Pairwise}) {
            const LabelScope label(channel, name_of(algorithm));
            communicator.reduce_scatter(data, part, counts, DType::f32, ReduceOp::Sum, algorithm);
            communicator.all_gather(part, data, counts, DType::f32, algorithm);
        }
        for (const Algorithm algorithm : {Algorithm::Library, Algorithm::Ring, Algorithm::Rabenseifner})
            require(channel.counts().at(std::string(name_of(algorithm))).bytes_of(Traffic::AllReduce) == 600, "all_reduce by {}",
                    name_of(algorithm));
        for (const Algorithm algorithm : {Algorithm::Library, Algorithm::Ring, Algorithm::Pairwise}) {
            const auto& count = channel.counts().at(std::string(name_of(algorithm)));
            require(count.bytes_of(Traffic::ReduceScatter) == 300 && count.bytes_of(Traffic::AllGather) == 300, "by {}",
                    name_of(algorithm));
            require(count.calls_of(Traffic::AllGather) == 1, "calls by {}", name_of(algorithm));
        }
        require(channel.counts().at("").total_bytes() == 0, "nothing was sent without a label");
        channel.clear_counts();
        require(channel.counts().at("ring") == TrafficCount{}, "cleared");
    });
}

TEST(Communicator, AutoFollowsTheTable) {
    ThreadWorld world(2);
    run_ranks(world, [&](Transport& transport) {
        Channel channel(transport, Lane::Gradient);
        Communicator communicator(channel, everybody(2));
        CollectiveTable table;
        table.set({Traffic::AllReduce, 2, true, 64, Algorithm::Tree});
        communicator.set_table(table);
        const CollectiveCall call{.kind = Traffic::AllReduce, .dtype = DType::f32, .count = 4};
        require(communicator.choice(call) == Algorithm::Tree, "the table's choice");
        std::vector<float> data(4, 1.0f);
        communicator.all_reduce(reinterpret_cast<std::byte*>(data.data()), 4, DType::f32);
        require(data[3] == 2.0f, "the sum");
    });
}

TEST(Communicator, RefusesWhatACollectiveDoesNotHave) {
    ThreadWorld world(1);
    Channel channel(world.rank(0), Lane::Gradient);
    Communicator communicator(channel, {0});
    double value = 1;
    auto* const data = reinterpret_cast<std::byte*>(&value);
    EXPECT_THROW(communicator.all_reduce(data, 1, DType::f64, ReduceOp::Sum, Algorithm::Bruck), Error);
    EXPECT_THROW(communicator.all_reduce(data, 1, DType::f16), Error);
    EXPECT_THROW(Communicator(channel, {0, 0}), Bug);
    EXPECT_THROW(communicator.reduce_scatter(data, data, std::vector<int64_t>{1, 1}, DType::f64), Bug);
}

}  // namespace

}  // namespace convoy
