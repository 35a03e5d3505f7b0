// Stands for the mpi transport in a build that does not have it.
#include "base/error.h"
#include "comm/launch.h"

namespace convoy {

namespace {

constexpr const char* kWhy = "not in this build (it needs MPI 3.1, such as Open MPI)";

}  // namespace

MpiStatus mpi_status() { return {false, kWhy}; }

std::unique_ptr<Transport> make_mpi_transport(const MpiOptions&) { fail("the mpi transport is {}", kWhy); }

}  // namespace convoy
