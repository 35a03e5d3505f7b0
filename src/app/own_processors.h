// What ranks do that fill a machine. A rank's thread, and the threads that it starts, keep to processors of their own: the system would move the threads of ranks that
// compute and carry traffic about among them, and ranks that wait for each other at every layer then wait for the one that was disturbed. And where there is no other
// machine, collectives wait until their results are needed (Link::set_fills_machine).
#pragma once

#include <optional>

#include <sched.h>

#include "exec/link.h"

namespace convoy {

// Tells the link whether its ranks, with so many threads each, fill the one machine that they are on. Collective; does nothing without a link. All
// commands that run training steps call it first, so that they run them in the same way.
void find_filled_machine(Link* link, int threads);

// Gives this rank's thread processors of its own, as long as it lives.
class OwnProcessors {
  public:
    // Finds out whether the machine is filled, and does no more where the ranks leave processors idle, or are too many. Nobody is moved either where somebody (a launcher,
    // OpenMP's variables, taskset) has placed the process already.
    OwnProcessors(Link* link, int threads);
    ~OwnProcessors();
    OwnProcessors(const OwnProcessors&) = delete;
    OwnProcessors& operator=(const OwnProcessors&) = delete;

  private:
    std::optional<cpu_set_t> before_;
};

}  // namespace convoy
