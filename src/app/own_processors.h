// Keeps a rank's thread, and the threads that it starts, on processors of its own as long as this lives. The system would move the threads of ranks that compute and
// carry traffic about among them, and ranks that wait for each other at every layer then wait for the one that was disturbed.
#pragma once

#include <optional>

#include <sched.h>

#include "exec/link.h"

namespace convoy {

class OwnProcessors {
  public:
    // Does nothing without a link, unless the ranks of this machine fill it exactly with so many threads each, or where somebody (a launcher, OpenMP's variables, taskset)
    // has placed the process already.
    OwnProcessors(Link* link, int threads);
    ~OwnProcessors();
    OwnProcessors(const OwnProcessors&) = delete;
    OwnProcessors& operator=(const OwnProcessors&) = delete;

  private:
    std::optional<cpu_set_t> before_;
};

}  // namespace convoy
