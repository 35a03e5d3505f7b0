// Connections between ranks that know where each of them listens. Internal to this module.
#pragma once

#include <string>
#include <vector>

#include "comm/socket/sockets.h"

namespace convoy {

struct Introduction {
    struct Place {
        std::string address;  // empty: this rank needs no connection to it
        int port = 0;
    };
    std::string word;  // that only the ranks of this run know
    Rank rank = 0;     // this one
    int kinds = 1;     // connections to each rank
    std::vector<Place> places;
};

// Everybody connects to the ranks before it and is reached by those after it. By peer and kind; none to a rank without an address. Error says who cannot be
// reached, or that not all came before the deadline.
std::vector<std::vector<Socket>> connect_all(const Introduction& introduction, const Listener& listener, Deadline deadline);

}  // namespace convoy
