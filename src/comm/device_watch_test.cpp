// The watch over a device, with this test in the device's place.
#include "comm/device_watch.h"

#include <gtest/gtest.h>

#include "comm/thread_world.h"

namespace convoy {

namespace {

using namespace std::chrono_literals;

class Watched : public testing::Test {
  protected:
    std::unique_ptr<DeviceWatch> watch_of(Rank rank, std::chrono::milliseconds limit) {
        return std::make_unique<DeviceWatch>(
            world_.rank(rank), std::array{&marks_[0], &marks_[1], &marks_[2], &marks_[3]},
            DeviceWatch::Options{.limit = limit,
                                 .trouble = [this] { return std::string(trouble_ ? "NCCL reports: a dead link" : ""); },
                                 .give_up = [this] { ++given_up_; }});
    }
    std::shared_ptr<WatchedTraffic> reduction(Rank rank) {
        return std::make_shared<WatchedTraffic>(WatchedTraffic{"all_reduce of layer \"conv1\" on the gradient queue (ranks 0, 1, 2)",
                                                               {make_meeting(world_.rank(rank), {0, 1, 2}, Lane::Gradient)}});
    }
    DeviceMarks& gradient() { return marks_[static_cast<size_t>(Lane::Gradient)]; }
    int64_t begun(Rank rank) { return world_.rank(rank).arrivals(group_key({0, 1, 2}, Lane::Gradient)).load(); }

    // Waits for it, at most 10 s.
    template <class Condition>
    static bool soon(const Condition& condition) {
        for (int i = 0; i < 2000 && !condition(); ++i) std::this_thread::sleep_for(5ms);
        return condition();
    }
    // What check() throws in the end.
    static std::string failure_of(const DeviceWatch& watch) {
        std::string text;
        soon([&] {
            try {
                watch.check();
            } catch (const Error& e) {
                text = e.what();
            }
            return !text.empty();
        });
        return text;
    }

    ThreadWorld world_{3};
    std::array<DeviceMarks, kLanes> marks_;
    std::atomic<bool> trouble_{false};
    std::atomic<int> given_up_{0};
};

TEST_F(Watched, WhatFinishesIsNoTrouble) {
    const auto watch = watch_of(0, 200ms);
    for (uint64_t i = 1; i <= 3; ++i) {
        watch->expect(Lane::Gradient, reduction(0));
        gradient().begun = i;
        EXPECT_TRUE(soon([&] { return begun(0) == static_cast<int64_t>(i); }));
        gradient().done = i;
    }
    std::this_thread::sleep_for(300ms);
    EXPECT_NO_THROW(watch->check());
    EXPECT_EQ(given_up_, 0);
}

TEST_F(Watched, WhatHasNotBegunMayTakeItsTime) {
    const auto watch = watch_of(0, 50ms);
    watch->expect(Lane::Gradient, reduction(0));
    std::this_thread::sleep_for(200ms);
    EXPECT_NO_THROW(watch->check()) << "the device is still computing what is to be sent";
    EXPECT_EQ(begun(0), 0);
}

TEST_F(Watched, NamesWhatIsLateAndWhoIsMissing) {
    const auto watch = watch_of(0, 100ms);
    world_.rank(1).arrivals(group_key({0, 1, 2}, Lane::Gradient)) = 2;
    world_.rank(2).arrivals(group_key({0, 1, 2}, Lane::Gradient)) = 1;
    watch->expect(Lane::Gradient, reduction(0));
    watch->expect(Lane::Gradient, reduction(0));
    gradient().begun = 2;
    gradient().done = 1;
    EXPECT_EQ(failure_of(*watch),
              "rank 0 waited 0.1 s in all_reduce of layer \"conv1\" on the gradient queue (ranks 0, 1, 2); not arrived: rank 2");
    EXPECT_TRUE(soon([&] { return given_up_ == 1; }));
}

TEST_F(Watched, TheLibrarysTroubleEndsIt) {
    const auto watch = watch_of(1, 20s);
    watch->expect(Lane::Gradient, reduction(1));
    gradient().begun = 1;
    EXPECT_TRUE(soon([&] { return begun(1) == 1; }));
    trouble_ = true;
    EXPECT_EQ(failure_of(*watch),
              "rank 1, in all_reduce of layer \"conv1\" on the gradient queue (ranks 0, 1, 2): NCCL reports: a dead link");
    EXPECT_TRUE(soon([&] { return given_up_ == 1; }));
}

TEST_F(Watched, AnotherRanksFailureEndsIt) {
    const auto watch = watch_of(0, 20s);
    watch->expect(Lane::Gradient, reduction(0));
    gradient().begun = 1;
    EXPECT_TRUE(soon([&] { return begun(0) == 1; }));
    world_.rank(2).fail_all("the disk is full");
    EXPECT_EQ(failure_of(*watch),
              "rank 2 ended the run: the disk is full; rank 0 was in all_reduce of layer \"conv1\" on the gradient queue (ranks 0, 1, 2)");
    EXPECT_THROW(watch->check(), RunFailed);
}

}  // namespace

}  // namespace convoy
