// Sockets of our own between the ranks of different nodes. Where the network is Ethernet, MPI too goes by TCP, but takes more processor time for the same bytes (Open MPI
// 4.1: 145 ms of the system's against about 90 in a step of ResNet-50 at 1 Gbit/s), on the cores that compute; where it is a faster one, MPI knows how to use it. Internal to this module.
#pragma once

#include <memory>
#include <vector>

#include "comm/launch.h"
#include "comm/socket/socket_lanes.h"

namespace convoy {

// Collective over all ranks, after MPI has begun. Null where MPI is to carry everything: all ranks are on one node, there are too many for a connection between any
// two, a node has a network faster than Ethernet (unless sockets were asked for), or some cannot reach each other. Where there are several nodes the first rank says in a line which way
// messages go. Of several networks the fastest is taken; CONVOY_INTERFACE, or what Open MPI was told (OMPI_MCA_btl_tcp_if_include), names others: "eth0,10.1.0.0/16".
std::unique_ptr<SocketLanes> connect_nodes(Rank rank, const std::vector<int>& nodes, const MpiOptions& options);

}  // namespace convoy
