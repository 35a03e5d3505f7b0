// Ranks that find each other by a file. Each is a thread here, with a transport of its own; all traffic is on the loopback interface.
#include <gtest/gtest.h>

#include <unistd.h>

#include <thread>

#include "base/file.h"
#include "base/json.h"
#include "base/test_count.h"
#include "comm/communicator.h"
#include "comm/launch.h"
#include "comm/socket/sockets.h"
#include "comm/testing.h"

namespace convoy {

namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

class Sockets : public testing::Test {
  protected:
    void SetUp() override {
        directory_ = fs::temp_directory_path() / ("convoy-rendezvous-" + std::to_string(::getpid()) + "-" +
                                                  testing::UnitTest::GetInstance()->current_test_info()->name());
        fs::remove_all(directory_);
        fs::create_directories(directory_);
    }
    void TearDown() override { fs::remove_all(directory_); }

    fs::path file() const { return directory_ / "meet"; }
    RendezvousOptions options(Rank rank, int size, std::chrono::milliseconds limit = 20s) const {
        return {.file = file(), .rank = rank, .size = size, .limit = limit, .answer_limit = 500ms};
    }

    // What each rank's transport, or body, threw.
    std::vector<std::string> run(const std::vector<RendezvousOptions>& ranks, const std::function<void(Transport&)>& body) const {
        std::vector<std::string> errors(ranks.size());
        std::vector<std::thread> threads;
        for (size_t i = 0; i < ranks.size(); ++i)
            threads.emplace_back([&, i] {
                std::unique_ptr<Transport> transport;
                try {
                    transport = make_socket_transport(ranks[i]);
                    body(*transport);
                } catch (const RunFailed& e) {
                    errors[i] = e.what();
                } catch (const std::exception& e) {
                    errors[i] = e.what();
                    if (transport) transport->fail_all(e.what());
                }
            });
        for (std::thread& t : threads) t.join();
        return errors;
    }
    std::vector<std::string> run(int size, const std::function<void(Transport&)>& body) const {
        std::vector<RendezvousOptions> ranks;
        for (Rank r = 0; r < size; ++r) ranks.push_back(options(r, size));
        return run(ranks, body);
    }
    static void all_well(const std::vector<std::string>& errors) {
        for (const std::string& error : errors) EXPECT_EQ(error, "");
    }

    fs::path directory_;
};

std::vector<Rank> everybody(const Transport& transport) {
    std::vector<Rank> group;
    for (Rank r = 0; r < transport.size(); ++r) group.push_back(r);
    return group;
}

void sum_of_ones(Transport& transport, std::chrono::milliseconds limit = 20s) {
    Channel channel(transport, Lane::Gradient, limit);
    Communicator communicator(channel, everybody(transport));
    std::vector<float> data(1000, 1.0f);
    const LabelScope label(channel, "conv1");
    communicator.all_reduce(reinterpret_cast<std::byte*>(data.data()), 1000, DType::f32);
    for (const float x : data) require(x == static_cast<float>(transport.size()), "{} of {} ranks", x, transport.size());
}

TEST_F(Sockets, EveryCollective) {
    for (const int size : {1, 3})
        all_well(run(size, [](Transport& transport) {
            Channel activation(transport, Lane::Activation, 20s), gradient(transport, Lane::Gradient, 20s);
            const Communicators all({{&activation, everybody(transport)}, {&gradient, everybody(transport)}});
            const auto work = [&](Channel& channel, uint64_t seed) {
                for (const int64_t count : test_count(0, 1) ? std::vector<int64_t>{0, 1, 515, 20003} : std::vector<int64_t>{0, 515})
                    for (const auto& check : testing_comm::all_checks(count, seed))
                        testing_comm::run_check(all.at(channel, everybody(transport)), check);
            };
            std::thread other([&] {
                try {
                    work(activation, 1);
                } catch (const std::exception& e) {
                    transport.fail_all(e.what());
                }
            });
            try {
                work(gradient, 1000);
            } catch (...) {
                other.join();
                throw;
            }
            other.join();
        }));
    EXPECT_FALSE(fs::exists(file())) << "the file is gone when all have met";
}

// The first rank's gradients stay under way while the second does not look at them.
TEST_F(Sockets, LateGradientsGiveWayForAWhile) {
    all_well(run(2, [](Transport& transport) {
        std::vector<std::byte> large(64 << 20), small(8);
        const auto exchange = [&](Lane lane, std::vector<std::byte>& data) {
            const Address other{.lane = lane, .peer = 1 - transport.rank(), .tag = 1};
            return transport.rank() == 0 ? transport.send(other, data) : transport.receive(other, data);
        };
        const auto finish = [&](Request request) { require(transport.wait({&request, 1}, Clock::now() + 20s), "nothing comes"); };
        if (transport.rank() == 0) {
            Request gradients = exchange(Lane::Gradient, large);
            require(!transport.done(gradients), "64 MiB have gone, though nobody takes them");
            const auto begin = Clock::now();
            finish(exchange(Lane::Late, small));
            EXPECT_GE(Clock::now() - begin, 15ms);
            finish(gradients);
        } else {
            finish(exchange(Lane::Late, small));
            finish(exchange(Lane::Gradient, large));
        }
        finish(exchange(Lane::Late, small));
    }));
}

TEST_F(Sockets, LargeMessagesBothWaysAndToItself) {
    all_well(run(2, [](Transport& transport) {
        Channel channel(transport, Lane::Activation, 20s);
        const Rank other = 1 - transport.rank();
        const auto mine = testing_comm::noise(3'000'000, static_cast<uint64_t>(transport.rank())),
                   theirs = testing_comm::noise(3'000'000, static_cast<uint64_t>(other));
        std::vector<std::byte> got(mine.size()), own(mine.size()), early(100);
        channel.exchange(std::vector<Outgoing>{{other, 1, mine}, {transport.rank(), 2, mine}, {other, 7, std::span(mine).first(100)}},
                         std::vector<Incoming>{{other, 1, got}, {transport.rank(), 2, own}});
        channel.receive(other, 7, early);  // came before it was asked for
        require(got == theirs && own == mine && std::equal(early.begin(), early.end(), theirs.begin()), "not what was sent");
    }));
}

TEST_F(Sockets, AMessageOfAnotherSizeIsAnError) {
    const auto errors = run(2, [](Transport& transport) {
        Channel channel(transport, Lane::Activation, 5s);
        std::vector<std::byte> data(transport.rank() == 0 ? 100 : 50);
        if (transport.rank() == 0)
            channel.send(1, 3, data);
        else
            channel.receive(0, 3, data);
        Communicator(channel, {0, 1}).barrier();
    });
    EXPECT_EQ(errors[1], "a message from rank 0 to rank 1 with tag 3 has not the size that is expected");
}

TEST_F(Sockets, RanksMayComeInAnyOrder) {
    for (const Rank last : {0, 1, 2}) {
        std::vector<std::thread> threads;
        std::atomic<int> met{0};
        for (Rank r = 0; r < 3; ++r)
            threads.emplace_back([&, r] {
                if (r == last) std::this_thread::sleep_for(200ms);
                const auto transport = make_socket_transport(options(r, 3));
                sum_of_ones(*transport);
                met += transport->nodes() == std::vector<int>{0, 0, 0};
            });
        for (std::thread& t : threads) t.join();
        EXPECT_EQ(met, 3);
    }
}

// What an earlier run may have left: a port where nobody listens, one where somebody else does, and rubbish.
TEST_F(Sockets, AStaleFileIsLookedAtAgain) {
    const Listener other = listen_at("127.0.0.1");
    int closed_port = 0;
    closed_port = listen_at("127.0.0.1").port;
    const auto left = [](int port) { return Json{{"rendezvous", "0123"}, {"address", "127.0.0.1"}, {"port", port}, {"ranks", 2}}.dump(); };
    for (const std::string& text : {left(closed_port), left(other.port), std::string("{\"rendez"), std::string()}) {
        write_file(file(), text);
        std::vector<std::string> errors(2);
        std::thread early([&] {
            try {
                sum_of_ones(*make_socket_transport(options(1, 2)));
            } catch (const std::exception& e) {
                errors[1] = e.what();
            }
        });
        std::this_thread::sleep_for(150ms);
        try {
            sum_of_ones(*make_socket_transport(options(0, 2)));
        } catch (const std::exception& e) {
            errors[0] = e.what();
        }
        early.join();
        all_well(errors);
    }
}

TEST_F(Sockets, WaitsNoLongerThanTheLimit) {
    const auto error_of = [&](Rank rank, int size) { return run({options(rank, size, 300ms)}, [](Transport&) {})[0]; };
    const auto start = Clock::now();
    EXPECT_EQ(error_of(0, 3), fmt::format("rank 0 waited 0.3 s at the rendezvous {} for ranks 1, 2", file().string()));
    EXPECT_FALSE(fs::exists(file())) << "it leads nowhere any more";
    EXPECT_EQ(error_of(1, 2), fmt::format("rank 1 waited 0.3 s at the rendezvous {} for rank 0: there is no such file", file().string()));
    const int port = listen_at("127.0.0.1").port;
    write_file(file(), Json{{"rendezvous", "0123"}, {"address", "127.0.0.1"}, {"port", port}}.dump());
    EXPECT_EQ(error_of(1, 2),
              fmt::format("rank 1 waited 0.3 s at the rendezvous {} for rank 0: it leads to 127.0.0.1:{}, where no rank 0 of "
                          "this run answers; an earlier run may have left it",
                          file().string(), port));
    write_file(file(), "Monday");
    EXPECT_EQ(error_of(1, 2),
              fmt::format("rank 1 waited 0.3 s at the rendezvous {} for rank 0: the file is no rendezvous of ours", file().string()));
    EXPECT_LT(Clock::now() - start, 10s);
}

TEST_F(Sockets, RanksThatDoNotFitAreTold) {
    const auto errors = run({options(0, 3), options(1, 2)}, [](Transport&) {});
    const std::string counts = fmt::format("rendezvous {}: rank 1 was started as one of 2 ranks, rank 0 as one of 3", file().string());
    EXPECT_EQ(errors, (std::vector<std::string>{counts, counts}));
    const auto twice = run({options(0, 3), options(1, 3), options(1, 3)}, [](Transport&) {});
    for (const std::string& error : twice)
        EXPECT_EQ(error, fmt::format("rendezvous {}: two processes were started as rank 1", file().string()));
    EXPECT_EQ(run({options(3, 3)}, [](Transport&) {})[0], "there is no rank 3 among 3 ranks");
}

TEST_F(Sockets, AFailureReachesEverybody) {
    const auto start = Clock::now();
    const auto errors = run(3, [](Transport& transport) {
        std::this_thread::sleep_for(transport.rank() == 1 ? 100ms : 0ms);
        require(transport.rank() != 1, "the disk is full");
        sum_of_ones(transport);
    });
    for (const Rank r : {0, 2})
        EXPECT_EQ(errors[static_cast<size_t>(r)],
                  fmt::format("rank 1 ended the run: the disk is full; rank {} was in all_reduce of layer \"conv1\" on the gradient "
                              "queue (ranks 0, 1, 2)",
                              r));
    EXPECT_LT(Clock::now() - start, 10s);
}

// Its connections close without a word, as those of a process that was killed.
TEST_F(Sockets, WhoIsGoneIsNamedWithWhereTheOthersWere) {
    const auto start = Clock::now();
    std::thread gone([&] {
        try {
            const auto transport = make_socket_transport(options(1, 3));
            std::this_thread::sleep_for(100ms);
            throw 0;
        } catch (int) {
        }
    });
    const auto errors = run({options(0, 3), options(2, 3)}, [](Transport& transport) { sum_of_ones(transport); });
    gone.join();
    for (const Rank r : {0, 2})
        EXPECT_EQ(errors[static_cast<size_t>(r / 2)],
                  fmt::format("rank 1 is gone: its process has ended or cannot be reached; rank {} was in all_reduce of layer \"conv1\" "
                              "on the gradient queue (ranks 0, 1, 2)",
                              r));
    EXPECT_LT(Clock::now() - start, 10s);
}

TEST_F(Sockets, TheEndIsNotWaitedForLongerThanTheLimit) {
    const auto errors = run({options(0, 2, 1s), options(1, 2)}, [](Transport& transport) {
        if (transport.rank() == 1) std::this_thread::sleep_for(2s);
        transport.leave();
    });
    EXPECT_EQ(errors[0], "rank 0 waited 1 s for all ranks to end; not arrived: rank 1");
    EXPECT_EQ(errors[1], "rank 0 ended the run: " + errors[0] + "; rank 1 was at its end");
}

TEST_F(Sockets, NamesWhoDoesNotCome) {
    const auto errors = run(2, [](Transport& transport) {
        if (transport.rank() == 0) sum_of_ones(transport, 200ms);
        Channel channel(transport, Lane::Service, 5s);
        Communicator(channel, {0, 1}).barrier();
    });
    EXPECT_EQ(errors[0], "rank 0 waited 0.2 s in all_reduce of layer \"conv1\" on the gradient queue (ranks 0, 1); not arrived: rank 1");
}

}  // namespace

}  // namespace convoy
