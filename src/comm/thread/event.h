// How a thread waits for another: it looks for a moment, then gives its core away between looks, then sleeps until it is woken. Short waits
// are answered at once, and long ones cost nothing, also with more threads than cores. Internal to the thread transport.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "comm/patience.h"

namespace convoy {

class Event {
  public:
    // `spin`: how long to look before giving the core away; zero when there are more threads than cores.
    explicit Event(std::chrono::microseconds spin) : spin_(spin) {}
    static std::chrono::microseconds spin_for(int threads);

    // Waits until `holds()` or the deadline; whether it holds. What it looks at is changed by sequentially consistent atomics, and each change is
    // followed by notify. What changes without notify is seen within kSlice.
    template <class Condition>
    bool wait(const Condition& holds, Deadline deadline) {
        for (int i = 0; i < kLooks; ++i)
            if (holds()) return true;
        for (const auto start = Clock::now(); Clock::now() - start < kPatience;) {
            if (holds()) return true;
            if (Clock::now() - start >= spin_) give_way();
        }
        return sleep(holds, deadline);
    }

    // Wakes those who wait.
    void notify();

  private:
    static constexpr int kLooks = 50;
    static constexpr auto kPatience = std::chrono::microseconds(200);
    static constexpr auto kSlice = std::chrono::milliseconds(20);

    // Announcing the sleeper before the last look, while the other side changes before it looks for sleepers, loses no wake-up.
    template <class Condition>
    bool sleep(const Condition& holds, Deadline deadline) {
        sleepers_.fetch_add(1);
        std::unique_lock lock(mutex_);
        bool held = holds();
        for (auto now = Clock::now(); !held && now < deadline; now = Clock::now()) {
            wake_.wait_until(lock, std::min<Deadline>(deadline, now + kSlice));
            held = holds();
        }
        sleepers_.fetch_sub(1);
        return held;
    }

    std::chrono::microseconds spin_;
    std::atomic<int> sleepers_{0};
    std::mutex mutex_;
    std::condition_variable wake_;
};

}  // namespace convoy
