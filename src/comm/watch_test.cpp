// What happens when ranks do not come, or fail.
#include <thread>

#include <gtest/gtest.h>

#include "comm/communicator.h"
#include "comm/thread_world.h"

namespace convoy {

namespace {

using namespace std::chrono_literals;

// The text with which a run ends in which rank 2 of 4 never comes to the second all_reduce.
std::string text_when_one_is_missing(Algorithm algorithm) {
    ThreadWorld world(4);
    try {
        run_ranks(world, [&](Transport& transport) {
            Channel channel(transport, Lane::Gradient, transport.rank() == 0 ? 150ms : 20s);
            Communicator communicator(channel, {0, 1, 2, 3});
            std::vector<float> data(1000, 1.0f);
            auto* const bytes = reinterpret_cast<std::byte*>(data.data());
            const LabelScope label(channel, "layer3.conv2");
            communicator.all_reduce(bytes, 1000, DType::f32, ReduceOp::Sum, algorithm);
            if (transport.rank() != 2) communicator.all_reduce(bytes, 1000, DType::f32, ReduceOp::Sum, algorithm);
        });
    } catch (const Error& e) {
        return e.what();
    }
    return "no error";
}

TEST(Watch, NamesTheRankThatDidNotArrive) {
    for (const Algorithm algorithm : algorithms_of(Traffic::AllReduce)) {
        const auto start = Clock::now();
        EXPECT_EQ(
            text_when_one_is_missing(algorithm),
            "rank 0 ended the run: rank 0 waited 0.15 s in all_reduce of layer \"layer3.conv2\" on the gradient queue (ranks 0, 1, 2, 3); "
            "not arrived: rank 2")
            << name_of(algorithm);
        EXPECT_LT(Clock::now() - start, 5s) << "the others must not wait for their own limit";
    }
}

TEST(Watch, NamesThePeerOfATransfer) {
    ThreadWorld world(2);
    try {
        run_ranks(world, [&](Transport& transport) {
            Channel channel(transport, Lane::Activation, 100ms);
            const LabelScope label(channel, "conv1");
            std::vector<std::byte> data(64);
            if (transport.rank() == 0) channel.receive(1, 0, data);
        });
        FAIL() << "no error";
    } catch (const Error& e) {
        EXPECT_STREQ(e.what(),
                     "rank 0 ended the run: rank 0 waited 0.1 s in a transfer of layer \"conv1\" on the activation queue for a "
                     "message from rank 1");
    }
}

// What a rank that gave up had posted must not be written to: its memory is gone.
TEST(Watch, GivenUpMemoryIsNotTouched) {
    ThreadWorld world(2);
    Channel late(world.rank(0), Lane::Activation, 30ms), other(world.rank(1), Lane::Activation, 30ms);
    std::vector<std::byte> data(64, std::byte{7}), source(64, std::byte{1});
    EXPECT_THROW(late.receive(1, 0, data), Error);
    EXPECT_THROW(other.send(0, 0, source), Error);
    EXPECT_EQ(data, std::vector<std::byte>(64, std::byte{7}));
}

TEST(Watch, AGivenUpCollectiveIsNotFinishedByTheOthers) {
    for (const Algorithm algorithm : algorithms_of(Traffic::AllReduce)) {
        ThreadWorld world(2);
        Channel late(world.rank(0), Lane::Activation, 30ms), other(world.rank(1), Lane::Activation, 30ms);
        Communicator first(late, {0, 1}), second(other, {0, 1});
        std::vector<int32_t> data(8, 7), theirs(8, 1);
        EXPECT_THROW(first.all_reduce(reinterpret_cast<std::byte*>(data.data()), 8, DType::i32, ReduceOp::Sum, algorithm), Error);
        EXPECT_THROW(second.all_reduce(reinterpret_cast<std::byte*>(theirs.data()), 8, DType::i32, ReduceOp::Sum, algorithm), Error);
        EXPECT_EQ(data, std::vector<int32_t>(8, 7)) << name_of(algorithm);
    }
}

TEST(Watch, AFailureReachesEveryWait) {
    for (const bool library : {true, false}) {
        ThreadWorld world(5);
        std::atomic<int> told{0};
        const auto start = Clock::now();
        try {
            run_ranks(world, [&](Transport& transport) {
                Channel channel(transport, Lane::Gradient);
                Communicator communicator(channel, {0, 1, 2, 3, 4});
                std::vector<double> data(10);
                std::this_thread::sleep_for(transport.rank() == 3 ? 50ms : 0ms);
                require(transport.rank() != 3, "the disk is full");
                try {
                    if (transport.rank() == 4) {
                        channel.receive(0, 1, std::as_writable_bytes(std::span(data)));
                    } else {
                        communicator.all_reduce(reinterpret_cast<std::byte*>(data.data()), 10, DType::f64, ReduceOp::Sum,
                                                library ? Algorithm::Library : Algorithm::Ring);
                    }
                } catch (const RunFailed& e) {
                    const std::string where = transport.rank() == 4
                                                  ? "a transfer between steps on the gradient queue (with rank 0)"
                                                  : "all_reduce between steps on the gradient queue (ranks 0, 1, 2, 3, 4)";
                    const std::string expected =
                        fmt::format("rank 3 ended the run: the disk is full; rank {} was in {}", transport.rank(), where);
                    EXPECT_EQ(e.what(), expected);
                    told += e.what() == expected;
                }
            });
            ADD_FAILURE() << "no error";
        } catch (const Error& e) {
            EXPECT_STREQ(e.what(), "rank 3 ended the run: the disk is full");
        }
        EXPECT_EQ(told, 4);
        EXPECT_LT(Clock::now() - start, 5s);
    }
}

// A thread may wait between two steps while another one is in the middle of a layer: whichever learns of the end tells of both.
TEST(Watch, AFailureTellsOfEveryLane) {
    ThreadWorld world(2);
    std::atomic<int> told{0};
    std::atomic<Transport*> survivor{nullptr};
    const auto waits_on = [&](Lane lane) { return survivor && survivor.load()->work(lane).now(); };
    const auto start = Clock::now();
    const auto fails = [&](Transport& transport) {
        if (transport.rank() == 1) {
            while (!waits_on(Lane::Gradient) || !waits_on(Lane::Service)) std::this_thread::yield();
            fail("the disk is full");
        }
        survivor = &transport;
        Channel gradient(transport, Lane::Gradient), service(transport, Lane::Service);
        const std::string layer = "a transfer of layer \"conv1\" on the gradient queue (with rank 1)";
        const std::string between = "a transfer between steps on the service queue (with rank 1)";
        const auto wait = [&](Channel& channel, const std::string& first, const std::string& second) {
            std::byte data{};
            try {
                channel.receive(1, 1, {&data, 1});
            } catch (const RunFailed& e) {
                EXPECT_EQ(e.what(), fmt::format("rank 1 ended the run: the disk is full; rank 0 was in {} and in {}", first, second));
                ++told;
            }
        };
        std::thread beside([&] {
            const LabelScope label(gradient, "conv1");
            wait(gradient, layer, between);
        });
        wait(service, between, layer);
        beside.join();
    };
    EXPECT_THROW(run_ranks(world, fails), Error);
    EXPECT_EQ(told, 2);
    EXPECT_LT(Clock::now() - start, 5s);
}

TEST(Watch, TheFirstFailureCounts) {
    ThreadWorld world(2);
    EXPECT_EQ(world.failure(), std::nullopt);
    world.rank(1).fail_all("first");
    world.rank(0).fail_all("second");
    EXPECT_EQ(world.failure(), "rank 1 ended the run: first");
}

TEST(Watch, RanksThatMakeDifferentCallsAreTold) {
    ThreadWorld world(2);
    EXPECT_THROW(run_ranks(world,
                           [](Transport& transport) {
                               Channel channel(transport, Lane::Gradient);
                               Communicator communicator(channel, {0, 1});
                               std::vector<double> data(10);
                               communicator.all_reduce(reinterpret_cast<std::byte*>(data.data()), transport.rank() + 3, DType::f64);
                           }),
                 Error);
}

}  // namespace

}  // namespace convoy
