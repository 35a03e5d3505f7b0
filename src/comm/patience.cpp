#include "comm/patience.h"

#include <sys/prctl.h>

#include <algorithm>
#include <thread>

namespace convoy {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// A short sleep. By default Linux lengthens it by up to 50 microseconds to save power; not so for this thread.
void nap(Clock::duration length) {
    thread_local const int exact = prctl(PR_SET_TIMERSLACK, 1000);  // nanoseconds
    static_cast<void>(exact);
    std::this_thread::sleep_for(length);
}

constexpr auto kShortest = microseconds(20);

// Until when this thread takes it that others want the core. A hint about the core, not about what is waited for.
thread_local Clock::time_point wanted_until{};

// How long this thread's waits have taken of late. The pieces of a large message come one like the other, so most of such a wait can be slept through.
thread_local Clock::duration usual_wait{};

thread_local bool beside_computation = false;

}  // namespace

void run_beside_computation() { beside_computation = true; }

void give_way() {
    constexpr auto kTaken = microseconds(200);
    constexpr auto kRemembered = milliseconds(50);
    const auto before = Clock::now();
    if (before < wanted_until) return nap(kShortest);
    std::this_thread::yield();
    const auto after = Clock::now();
    if (after - before > kTaken) wanted_until = after + kRemembered;
}

bool Glance::pause() {
    constexpr auto kLongest = microseconds(50);
    if (beside_computation) return false;
    const auto now = Clock::now();
    if (start_ == Clock::time_point{}) start_ = now;
    return now - start_ < kLongest;
}

Patience::~Patience() {
    const Clock::duration waited = start_ == Clock::time_point{} ? Clock::duration{} : Clock::now() - start_;
    usual_wait += (waited - usual_wait) / 4;
}

bool Patience::pause(Deadline deadline) {
    constexpr int kFreeLooks = 20;
    if (++looks_ <= kFreeLooks) return true;
    const auto now = Clock::now();
    if (looks_ == kFreeLooks + 1) start_ = now;
    if (now >= deadline) return false;
    const auto waited = now - start_;
    if (looks_ == kFreeLooks + 1 && now < wanted_until && usual_wait > 2 * kShortest)
        nap(std::min<Clock::duration>(usual_wait / 2, milliseconds(1)));
    else if (waited >= milliseconds(1))
        nap(std::min<Clock::duration>(waited / 10, milliseconds(1)));
    else if (now < wanted_until)
        nap(std::max<Clock::duration>(waited / 3, kShortest));
    else if (waited >= microseconds(100))
        give_way();
    return true;
}

}  // namespace convoy
