// The queue that runs traffic beside the computation: order, what runs on the caller's thread, and what is left after a failure.
#include "exec/traffic.h"

#include <future>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

namespace convoy {
namespace {

// What has run, and on which thread.
struct Log {
    struct Entry {
        int work;
        std::thread::id thread;
    };
    std::mutex mutex;
    std::vector<Entry> entries;

    std::function<void()> writes(int work) {
        return [this, work] {
            const std::lock_guard lock(mutex);
            entries.push_back({work, std::this_thread::get_id()});
        };
    }
    std::vector<int> order() {
        const std::lock_guard lock(mutex);
        std::vector<int> list;
        for (const Entry& e : entries) list.push_back(e.work);
        return list;
    }
    bool ran_here(size_t i) {
        const std::lock_guard lock(mutex);
        return entries.at(i).thread == std::this_thread::get_id();
    }
};

std::string error_of(const std::function<void()>& call) {
    try {
        call();
    } catch (const std::exception& e) {
        return e.what();
    }
    return "";
}

std::function<void()> fails(const std::string& why) {
    return [why] { throw std::runtime_error(why); };
}

TEST(TrafficQueue, RunsInOrderOnItsOwnThreadStepAfterStep) {
    Log log;
    TrafficQueue queue;
    for (int i = 0; i < 3; ++i) queue.add(log.writes(i));
    EXPECT_EQ(queue.size(), 3u);
    queue.start();
    for (int step = 0; step < 50; ++step) {
        queue.post();
        queue.wait(1);
        EXPECT_EQ(log.order().back(), 0);
        queue.post();
        queue.post();
        queue.wait(3);
        queue.finish();
    }
    const std::vector<int> order = log.order();
    ASSERT_EQ(order.size(), 150u);
    for (size_t i = 0; i < order.size(); ++i) {
        EXPECT_EQ(order[i], static_cast<int>(i % 3));
        EXPECT_FALSE(log.ran_here(i));
    }
}

TEST(TrafficQueue, NeedsNoThreadWithoutWork) {
    TrafficQueue queue;
    queue.start();
    queue.wait(0);
    queue.finish();
}

TEST(TrafficQueue, EndsWithWorkThatWasNeverPosted) {
    Log log;
    {
        TrafficQueue queue;
        queue.add(log.writes(0));
        queue.add(log.writes(1));
        queue.start();
        queue.post();
        queue.wait(1);
    }
    EXPECT_EQ(log.order(), std::vector<int>{0});
}

TEST(TrafficQueue, RunsHereWhatHasNothingBeforeIt) {
    Log log;
    std::promise<void> go;
    TrafficQueue queue;
    queue.add([&, write = log.writes(0)] {
        go.get_future().wait();
        write();
    });
    for (int i = 1; i < 4; ++i) queue.add(log.writes(i));
    queue.start();
    queue.post();
    EXPECT_FALSE(queue.run_here()) << "the first is under way";
    EXPECT_TRUE(log.order().empty());
    go.set_value();
    queue.wait(1);
    EXPECT_TRUE(queue.run_here());
    EXPECT_EQ(log.order(), (std::vector<int>{0, 1}));
    queue.wait(2);  // is over, although no thread was told of it
    queue.post();
    queue.wait(3);
    EXPECT_TRUE(queue.run_here());
    queue.finish();
    EXPECT_EQ(log.order(), (std::vector<int>{0, 1, 2, 3}));
    for (const auto& [entry, here] : {std::pair<size_t, bool>{0, false}, {1, true}, {2, false}, {3, true}})
        EXPECT_EQ(log.ran_here(entry), here) << entry;
}

// What was posted but not looked at yet is before it too.
TEST(TrafficQueue, RunsNothingHereBehindWhatOnlyWaits) {
    Log log;
    std::promise<void> go;
    TrafficQueue queue;
    queue.add([&] { go.get_future().wait(); });
    for (int i = 1; i < 3; ++i) queue.add(log.writes(i));
    queue.start();
    queue.post();
    queue.post();
    EXPECT_FALSE(queue.run_here());
    queue.post();
    go.set_value();
    queue.finish();
    EXPECT_EQ(log.order(), (std::vector<int>{1, 2}));
    EXPECT_FALSE(log.ran_here(0) || log.ran_here(1));
}

TEST(TrafficQueue, AFailureOnTheThreadReachesEveryWaitAndNothingRunsAfterIt) {
    Log log;
    TrafficQueue queue;
    queue.add(log.writes(0));
    queue.add(fails("the cable is cut"));
    queue.add(log.writes(2));
    queue.add(log.writes(3));
    queue.start();
    queue.post();
    queue.wait(1);
    queue.post();
    queue.post();
    EXPECT_EQ(error_of([&] { queue.wait(2); }), "the cable is cut");
    EXPECT_EQ(error_of([&] { queue.wait(3); }), "the cable is cut") << "what came after it is over too, or a wait would hang";
    EXPECT_FALSE(queue.run_here());
    EXPECT_EQ(error_of([&] { queue.finish(); }), "the cable is cut");
    EXPECT_EQ(error_of([&] { queue.finish(); }), "the cable is cut");
    EXPECT_EQ(log.order(), std::vector<int>{0});
}

// The caller has the error; nothing waits for what did not happen, and the next step begins at the first again.
TEST(TrafficQueue, AFailureHereIsTheCallers) {
    Log log;
    bool broken = true;
    TrafficQueue queue;
    queue.add(log.writes(0));
    queue.add([&, write = log.writes(1)] {
        if (broken) throw std::runtime_error("no route");
        write();
    });
    queue.add(log.writes(2));
    queue.start();
    queue.post();
    queue.wait(1);
    EXPECT_EQ(error_of([&] { queue.run_here(); }), "no route");
    queue.wait(1);
    queue.finish();
    EXPECT_EQ(log.order(), std::vector<int>{0});
    broken = false;
    queue.post();
    queue.wait(1);
    EXPECT_TRUE(queue.run_here());
    queue.post();
    queue.finish();
    EXPECT_EQ(log.order(), (std::vector<int>{0, 0, 1, 2}));
}

// The last of a step may go on beside the next one, which does not take it for its own.
TEST(TrafficQueue, CarriesWorkIntoTheNextStep) {
    Log log;
    std::promise<void> go;
    bool held = true;
    TrafficQueue queue;
    queue.add(log.writes(0));
    queue.add(
        [&, write = log.writes(1)] {
            if (held) go.get_future().wait();
            write();
        },
        true);
    queue.add(log.writes(2), true);
    queue.start();
    for (int i = 0; i < 3; ++i) queue.post();
    queue.carry();  // waits for the first alone
    EXPECT_EQ(log.order(), std::vector<int>{0});
    queue.post();
    go.set_value();
    queue.wait_before(2);
    held = false;
    queue.wait(1);  // behind what was carried
    EXPECT_EQ(log.order(), (std::vector<int>{0, 1, 2, 0}));
    queue.post();
    queue.post();
    queue.carry();
    queue.wait_before(3);
    EXPECT_EQ(log.order(), (std::vector<int>{0, 1, 2, 0, 1, 2}));
    // A step that ends early: all that was posted is over, and the next begins at the first.
    queue.post();
    queue.finish();
    for (int i = 0; i < 3; ++i) queue.post();
    queue.finish();
    EXPECT_EQ(log.order(), (std::vector<int>{0, 1, 2, 0, 1, 2, 0, 0, 1, 2}));
}

TEST(TrafficQueue, AFailureInWhatWasCarriedReachesTheNextStep) {
    std::promise<void> go;
    TrafficQueue queue;
    queue.add([] {});
    queue.add(
        [&] {
            go.get_future().wait();
            throw std::runtime_error("the cable is cut");
        },
        true);
    queue.start();
    queue.post();
    queue.post();
    queue.carry();
    queue.post();
    go.set_value();
    EXPECT_EQ(error_of([&] { queue.wait_before(2); }), "the cable is cut");
    EXPECT_EQ(error_of([&] { queue.wait(1); }), "the cable is cut");
    EXPECT_EQ(error_of([&] { queue.carry(); }), "the cable is cut");
    EXPECT_EQ(error_of([&] { queue.finish(); }), "the cable is cut");
}

TEST(TrafficQueue, TwoDoNotWaitForEachOther) {
    Log log;
    std::promise<void> came;
    TrafficQueue slow, fast;
    slow.add([&, write = log.writes(0)] {
        came.get_future().wait();
        write();
    });
    fast.add(log.writes(1));
    fast.add([&, write = log.writes(2)] {
        write();
        came.set_value();
    });
    slow.start();
    fast.start();
    slow.post();
    EXPECT_TRUE(fast.run_here()) << "what is under way on the other queue is not before it";
    fast.post();
    fast.wait(2);
    slow.wait(1);
    slow.finish();
    fast.finish();
    EXPECT_EQ(log.order(), (std::vector<int>{1, 2, 0}));
}

TEST(TrafficQueue, AFailureOfOneIsNotThatOfTheOther) {
    Log log;
    TrafficQueue broken, whole;
    broken.add(fails("no route"));
    whole.add(log.writes(1));
    broken.start();
    whole.start();
    broken.post();
    EXPECT_EQ(error_of([&] { broken.wait(1); }), "no route");
    whole.post();
    whole.wait(1);
    whole.finish();
    EXPECT_EQ(log.order(), std::vector<int>{1});
}

}  // namespace
}  // namespace convoy
