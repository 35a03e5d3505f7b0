// What every file here does with MPI: checks its answers, waits without hogging a core, and keeps a request in ours.
#pragma once

#include <mpi.h>

#include "comm/transport.h"

namespace convoy {

// Error with MPI's text when `code` is no success.
void check_mpi(int code, const char* call);

// Between two looks at something that is not done: nothing at first, then the core is given away, then short sleeps that grow with the time waited
// (a tenth of it, at most a millisecond), so that they cost little of either the wait or the core. MPI makes progress only inside its calls,
// which is why this cannot simply sleep until it is woken.
class Patience {
  public:
    // False when the deadline has passed.
    bool pause(Deadline deadline);

  private:
    int looks_ = 0;
    Clock::time_point start_{};
};

// Tests until done. False when the deadline passed.
bool wait_for(MPI_Request& request, Deadline deadline);

Request pack(MPI_Request request);
MPI_Request unpack(const Request& request);

}  // namespace convoy
