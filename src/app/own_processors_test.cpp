#include "app/own_processors.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <mutex>
#include <set>
#include <thread>

#include "app/machine.h"
#include "comm/thread_world.h"

namespace convoy {

namespace {

int allowed() {
    cpu_set_t set;
    sched_getaffinity(0, sizeof(set), &set);
    return CPU_COUNT(&set);
}

// How many processors each of so many ranks has while it keeps to its own, and the first of each.
std::pair<std::vector<int>, std::set<int>> processors_of(int ranks, int threads) {
    std::vector<int> counts(static_cast<size_t>(ranks));
    std::set<int> firsts;
    std::mutex mutex;
    ThreadWorld world(ranks);
    run_ranks(world, [&](Transport& transport) {
        Link link(transport);
        const int before = allowed();
        {
            const OwnProcessors own(&link, threads);
            cpu_set_t set;
            sched_getaffinity(0, sizeof(set), &set);
            int first = 0;
            while (!CPU_ISSET(first, &set)) ++first;
            int inherited = 0;
            std::thread([&] { inherited = allowed(); }).join();
            const std::lock_guard lock(mutex);
            counts[static_cast<size_t>(link.rank())] = inherited;
            firsts.insert(first);
        }
        EXPECT_EQ(allowed(), before);
    });
    return {counts, firsts};
}

TEST(OwnProcessors, RanksThatFillTheMachineShareItOut) {
    const int all = allowed();
    const bool free = all == usable_cores() && all == sysconf(_SC_NPROCESSORS_ONLN) && std::getenv("OMP_PROC_BIND") == nullptr;
    const auto [counts, firsts] = processors_of(all, 1);
    for (const int count : counts) EXPECT_EQ(count, free ? 1 : all);
    EXPECT_EQ(firsts.size(), free ? static_cast<size_t>(all) : 1);
}

TEST(OwnProcessors, OthersStayWhereTheyMayBe) {
    const int all = allowed();
    const auto [counts, firsts] = processors_of(all + 1, 1);
    for (const int count : counts) EXPECT_EQ(count, all);
    const OwnProcessors alone(nullptr, all);
    EXPECT_EQ(allowed(), all);
}

}  // namespace

}  // namespace convoy
