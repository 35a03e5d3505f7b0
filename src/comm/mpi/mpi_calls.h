// What every file here does with MPI: checks its answers, waits, and keeps a request in ours. MPI makes progress only inside its calls, which is why
// waiting is looking again and again.
#pragma once

#include <mpi.h>

#include "comm/patience.h"

namespace convoy {

// Error with MPI's text when `code` is no success.
void check_mpi(int code, const char* call);

// Tests until done. False when the deadline passed.
bool wait_for(MPI_Request& request, Deadline deadline);

Request pack(MPI_Request request);
MPI_Request unpack(const Request& request);

}  // namespace convoy
