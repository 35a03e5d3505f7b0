// How processes that no launcher has introduced find each other: the first rank writes a file that says where it listens, the others look there, and it tells
// each where all of them are. The file is gone when all have met. One that an earlier run has left behind leads to nobody, or to
// somebody who does not know the word in it; it is looked at again until the first rank has replaced it.
#pragma once

#include <filesystem>
#include <vector>

#include "comm/launch.h"
#include "comm/socket/connect_all.h"

namespace convoy {

constexpr int kControl = kLanes;  // connections between two ranks: one for each lane, and one for control

// This rank's connections, by peer; none to itself.
struct Connections {
    std::vector<std::vector<Socket>> of;
    std::vector<int> nodes;  // of every rank
};

// Error, within the limit, says who did not come or what is wrong with the file.
Connections meet(const RendezvousOptions& options);

}  // namespace convoy
