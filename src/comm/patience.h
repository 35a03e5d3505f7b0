// How a thread of communication waits without hogging a core that others could use. Internal to this module.
#pragma once

#include "comm/transport.h"

namespace convoy {

// Gives the core away for a moment. When nobody else wants it, that is a fraction of a microsecond. Otherwise the thread would only come back after the other's
// time slice, milliseconds later; so once that has happened it sleeps for a moment instead, from which the scheduler brings it back at once,
// and looks again after a while whether the core is free.
void give_way();

// Before a sleep from which the system wakes us: a few more looks, because what two ranks that keep step exchange comes within microseconds, and the sleep and the waking
// take longer than that. Not on threads that run beside a computation, which can use the core.
class Glance {
  public:
    // Whether to look again rather than sleep.
    bool pause();

  private:
    Clock::time_point start_{};
};

// Between two looks at something that is not done: nothing at first, then the core is given away, then short sleeps that grow with the time waited
// (a tenth of it, at most a millisecond), so that they cost little of either the wait or the core. When others want the core it sleeps at once, first for half
// of what this thread's waits have taken of late.
class Patience {
  public:
    Patience() = default;
    ~Patience();
    Patience(const Patience&) = delete;
    Patience& operator=(const Patience&) = delete;

    // False when the deadline has passed.
    bool pause(Deadline deadline);

  private:
    int looks_ = 0;
    Clock::time_point start_{};
};

}  // namespace convoy
