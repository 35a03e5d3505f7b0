// What ranks do that fill a machine. A rank's thread, and the threads that it starts, keep to processors of their own as long as this lives: the system would move the threads
// of ranks that compute and carry traffic about among them, and ranks that wait for each other at every layer then wait for the one that was disturbed. And where there
// is no other machine, collectives wait until their results are needed (Link::set_fills_machine).
#pragma once

#include <optional>

#include <sched.h>

#include "exec/link.h"

namespace convoy {

class OwnProcessors {
  public:
    // Does nothing without a link, nor where the ranks of this machine leave processors idle with so many threads each. Nobody is moved where there are too many threads, or where
    // somebody (a launcher, OpenMP's variables, taskset) has placed the process already.
    OwnProcessors(Link* link, int threads);
    ~OwnProcessors();
    OwnProcessors(const OwnProcessors&) = delete;
    OwnProcessors& operator=(const OwnProcessors&) = delete;

  private:
    std::optional<cpu_set_t> before_;
};

}  // namespace convoy
