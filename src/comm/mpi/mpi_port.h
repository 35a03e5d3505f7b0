// What the mpi transport does itself for a group: through shared memory where that is possible, and otherwise MPI's own collectives, in their
// non-blocking form, so that waiting stays ours.
#pragma once

#include <mpi.h>

#include "comm/mpi/mpi_shared.h"
#include "comm/transport.h"
#include "tensor/tensor.h"

namespace convoy {

class MpiPort : public Port {
  public:
    // Both belong to the transport; `shared` may be null.
    MpiPort(MPI_Comm comm, MpiShared* shared, int place) : comm_(comm), shared_(shared), place_(place) {}

    bool offers(const CollectiveCall& call) const override;
    bool run(const CollectiveCall& call, Deadline deadline) override;

  private:
    MPI_Request start(const CollectiveCall& call);
    void finish(const CollectiveCall& call);

    MPI_Comm comm_;
    MpiShared* shared_;
    int place_;
    std::vector<int> counts_, offsets_, other_counts_, other_offsets_;  // as MPI wants them
    Buffer result_;                                                     // of a reduce_scatter whose result lies in its input
};

}  // namespace convoy
