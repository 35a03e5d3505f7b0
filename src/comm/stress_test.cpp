// Random programs: every rank runs the same random list of collectives and exchanges over random groups, on two lanes at once.
#include <algorithm>
#include <thread>

#include <gtest/gtest.h>

#include "base/random.h"
#include "base/test_count.h"
#include "comm/testing.h"
#include "comm/thread_world.h"

namespace convoy {

namespace {

using testing_comm::Check;
using testing_comm::noise;
using testing_comm::run_check;

class Script {
  public:
    Script(uint64_t seed, int ranks, Lane lane) : random_{seed, static_cast<uint32_t>(lane), 1}, ranks_(ranks) {
        for (int g = 0; g < 4; ++g) {
            std::vector<Rank> group;
            for (const int64_t r : permutation({seed, static_cast<uint32_t>(g), 2}, ranks)) group.push_back(static_cast<Rank>(r));
            group.resize(static_cast<size_t>(1 + below(ranks)));
            groups_.push_back(group);
        }
    }
    const std::vector<std::vector<Rank>>& groups() const { return groups_; }
    int below(int n) { return static_cast<int>(random_.bits(next_++) % static_cast<uint32_t>(n)); }

    Check check() {
        const auto kind = static_cast<Traffic>(below(6));
        const auto algorithms = algorithms_of(kind);
        constexpr std::array<DType, 3> types{DType::f64, DType::bf16, DType::i32};
        return {kind,
                algorithms[static_cast<size_t>(below(static_cast<int>(algorithms.size())))],
                types[static_cast<size_t>(below(3))],
                ReduceOp::Sum,
                below(4) == 0 ? below(3000) : below(40),
                random_.bits(next_++)};
    }

    // A message round the ring of all ranks.
    void rotate(Channel& channel) {
        const auto seed = random_.bits(next_++);
        const int64_t bytes = below(5000);
        const int distance = below(ranks_), rank = channel.transport().rank();
        const auto out = noise(bytes, seed + static_cast<uint64_t>(rank));
        std::vector<std::byte> in(static_cast<size_t>(bytes));
        const Rank from = (rank - distance + ranks_) % ranks_;
        channel.exchange(std::vector<Outgoing>{{(rank + distance) % ranks_, 3, out}}, std::vector<Incoming>{{from, 3, in}});
        require(in == noise(bytes, seed + static_cast<uint64_t>(from)), "a message of {} bytes from {} to {}", bytes, from, rank);
    }

  private:
    RandomStream random_;
    uint64_t next_ = 0;
    int ranks_;
    std::vector<std::vector<Rank>> groups_;
};

void run_script(const Communicators& all, Channel& channel, Script script, int steps) {
    for (int i = 0; i < steps; ++i) {
        if (script.below(4) == 0) {
            script.rotate(channel);
            continue;
        }
        const auto& group = script.groups()[static_cast<size_t>(script.below(4))];
        const Check check = script.check();
        if (std::count(group.begin(), group.end(), channel.transport().rank())) run_check(all.at(channel, group), check);
    }
}

TEST(Stress, RandomProgramsOnTwoLanes) {
    const int worlds = test_count(6, 200);
    for (int w = 0; w < worlds; ++w) {
        SCOPED_TRACE(w);
        const int ranks = 2 + w % 7;
        ThreadWorld world(ranks, w % 3);
        run_ranks(world, [&](Transport& transport) {
            std::vector<std::unique_ptr<Channel>> channels;
            std::vector<Communicators::Wanted> wanted;
            std::vector<Script> scripts;
            for (const Lane lane : {Lane::Activation, Lane::Gradient}) {
                channels.push_back(std::make_unique<Channel>(transport, lane));
                scripts.emplace_back(static_cast<uint64_t>(w), ranks, lane);
                for (const auto& group : scripts.back().groups())
                    if (std::count(group.begin(), group.end(), transport.rank())) wanted.emplace_back(channels.back().get(), group);
            }
            const Communicators all(wanted);
            std::vector<std::thread> threads;
            for (size_t lane = 0; lane < 2; ++lane) {
                threads.emplace_back([&, lane] {
                    try {
                        run_script(all, *channels[lane], scripts[lane], 60);
                    } catch (const std::exception& e) {
                        transport.fail_all(e.what());
                    }
                });
            }
            for (std::thread& thread : threads) thread.join();
        });
    }
}

}  // namespace

}  // namespace convoy
