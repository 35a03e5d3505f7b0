#include "comm/patience.h"

#include <sys/prctl.h>

#include <algorithm>
#include <thread>

namespace convoy {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// A short sleep. By default Linux lengthens it by up to 50 microseconds to save power; not so for this thread.
void nap() {
    thread_local const int exact = prctl(PR_SET_TIMERSLACK, 1000);  // nanoseconds
    static_cast<void>(exact);
    std::this_thread::sleep_for(microseconds(20));
}

}  // namespace

void give_way() {
    constexpr auto kTaken = microseconds(200);
    constexpr auto kRemembered = milliseconds(50);
    thread_local Clock::time_point wanted_until{};  // a hint about the core, not about what is waited for
    const auto before = Clock::now();
    if (before < wanted_until) return nap();
    std::this_thread::yield();
    const auto after = Clock::now();
    if (after - before > kTaken) wanted_until = after + kRemembered;
}

bool Patience::pause(Deadline deadline) {
    constexpr int kFreeLooks = 20;
    if (++looks_ <= kFreeLooks) return true;
    const auto now = Clock::now();
    if (looks_ == kFreeLooks + 1) start_ = now;
    if (now >= deadline) return false;
    const auto waited = now - start_;
    if (waited < microseconds(100)) return true;
    if (waited < milliseconds(1))
        give_way();
    else
        std::this_thread::sleep_for(std::min<Clock::duration>(waited / 10, milliseconds(1)));
    return true;
}

}  // namespace convoy
