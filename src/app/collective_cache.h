// The algorithms that measured fastest for collectives here (`convoy bench comm`), kept between runs: one file for each way in which ranks are spread over
// machines.
#pragma once

#include <filesystem>

#include "comm/collective_table.h"
#include "comm/transport.h"

namespace convoy {

// What these files are named by and hold: how the ranks talk and lie, and what they run on.
struct CollectiveSetting {
    std::string transport;   // "mpi"
    std::string carrier;     // what carries messages between nodes: "mpi" or "sockets"
    std::vector<int> nodes;  // of every rank
    std::string machine;     // "AMD EPYC 9R14; Open MPI 4.1.4"
};
CollectiveSetting setting_of(const Transport& transport);

// "collectives-mpi-4+4.json" in the cache directory; "collectives-mpi-sockets-4+4.json" where another carrier goes between nodes.
std::filesystem::path cache_file(const CollectiveSetting& setting);
// Adds to what is kept for this setting: entries that differ in the algorithm alone are replaced, others stay. Error when it cannot be written.
void save(const CollectiveSetting& setting, const CollectiveTable& table);
// The defaults with what was measured instead where anything was. A file that cannot be read or comes from another machine is ignored, and one line on
// standard error says so.
CollectiveTable known_table(const CollectiveSetting& setting);

}  // namespace convoy
