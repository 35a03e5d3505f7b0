// The ranks of a run that are processes: started by a launcher (mpirun, mpiexec, srun), or by hand, when they find each other by a file. A build without MPI has
// the same functions, which say so.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "comm/transport.h"

namespace convoy {

struct MpiStatus {
    bool ready = false;
    std::string detail;  // "Open MPI 4.1.4", or why it is absent
};
// What this build has. Starts nothing.
MpiStatus mpi_status();

// The size of the world that a launcher's environment announces (Open MPI, MPICH, PMI, Slurm with PMI or PMIx), or nothing after a plain
// start. Never touches MPI. An announced size of one counts.
std::optional<int> launched_size();
// Which of them this process is, as far as a launcher says; 0 otherwise.
int launched_rank();
// The tasks of the Slurm step that this process is one of, when they are several and MPI would not find the others because Slurm offers it no PMI.
std::optional<int> tasks_without_mpi();
// Error unless the world has the size that the launcher's environment announces: each process would be a run of its own where launcher and library belong to different
// MPIs.
void require_launched_world(int announced, int world);

// What carries messages between ranks on different nodes under MPI: our sockets where the network is Ethernet, or always one of them.
enum class BetweenNodes : uint8_t { Auto, Mpi, Sockets };

struct MpiOptions {
    BetweenNodes between_nodes = BetweenNodes::Auto;
    int ranks_per_node = 0;                                     // above 0: pretend that nodes hold so many consecutive ranks each
    std::chrono::milliseconds limit = std::chrono::minutes(5);  // until all have come where a group is opened, and in the end
    std::chrono::milliseconds answer_limit =
        std::chrono::seconds(3);  // how long a rank may take to answer before it counts as not responding
    std::chrono::milliseconds abort_limit = std::chrono::seconds(5);  // how long MPI_Abort may take before the process ends by itself
};

// Starts MPI, which can be done once in a process, and stops it when the transport is destroyed. Error when this build has none.
std::unique_ptr<Transport> make_mpi_transport(const MpiOptions& options = {});

struct RendezvousOptions {
    std::filesystem::path file;  // the same for all ranks; its directory must be there
    Rank rank = 0;
    int size = 1;
    std::string address = "127.0.0.1";                          // where this rank listens: others must reach it there
    std::chrono::milliseconds limit = std::chrono::minutes(5);  // until all have met, and in the end until all leave
    std::chrono::milliseconds answer_limit =
        std::chrono::seconds(3);  // how long a rank may take to answer before it counts as not responding
};

// Meets the other ranks, each of which calls it in a process of its own (or, in tests, a thread). Error, within the limit, when they do not all
// come.
std::unique_ptr<Transport> make_socket_transport(const RendezvousOptions& options);

}  // namespace convoy
