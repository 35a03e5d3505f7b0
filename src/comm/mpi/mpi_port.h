// MPI's own collectives for a group, in their non-blocking form, so that waiting stays ours.
#pragma once

#include <mpi.h>

#include "comm/transport.h"
#include "tensor/tensor.h"

namespace convoy {

class MpiPort : public Port {
  public:
    // `comm` belongs to the transport.
    MpiPort(MPI_Comm comm, int place) : comm_(comm), place_(place) {}

    bool offers(const CollectiveCall& call) const override;
    bool run(const CollectiveCall& call, Deadline deadline) override;

  private:
    MPI_Request start(const CollectiveCall& call);
    void finish(const CollectiveCall& call);

    MPI_Comm comm_;
    int place_;
    std::vector<int> counts_, offsets_, other_counts_, other_offsets_;  // as MPI wants them
    Buffer result_;                                                     // of a reduce_scatter whose result lies in its input
};

}  // namespace convoy
