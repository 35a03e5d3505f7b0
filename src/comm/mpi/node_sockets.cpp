#include "comm/mpi/node_sockets.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <mpi.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <random>

#include "base/error.h"
#include "base/log.h"
#include "comm/mpi/mpi_calls.h"
#include "comm/socket/connect_all.h"

namespace convoy {

namespace {

constexpr size_t kMostRanks = 64;                 // each has a connection for each lane to every rank of other nodes
constexpr auto kLimit = std::chrono::seconds(5);  // until all are connected
constexpr size_t kMostAddresses = 8;

struct Interface {
    uint32_t address = 0, mask = 0;  // in the network's order
};

// What each rank tells the others.
struct Card {
    uint64_t word = 0;  // the first rank's counts
    int32_t port = 0;   // 0: it cannot listen
    int32_t count = 0;
    std::array<Interface, kMostAddresses> interfaces{};
};

// Networks that are no Ethernet, as Linux lists them: InfiniBand and Omni-Path, and Slingshot.
bool has_fast_network() {
    for (const char* directory : {"/sys/class/infiniband", "/sys/class/cxi"}) {
        std::error_code none;
        if (std::filesystem::directory_iterator(directory, none) != std::filesystem::directory_iterator()) return true;
    }
    return false;
}

// Where this machine can be reached; itself, at the loopback address, only where nodes are pretended.
void list_interfaces(Card& card, bool pretended) {
    ifaddrs* all = nullptr;
    if (getifaddrs(&all) != 0) return;
    for (const ifaddrs* at = all; at != nullptr; at = at->ifa_next) {
        const bool loopback = (at->ifa_flags & IFF_LOOPBACK) != 0;
        if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET || at->ifa_netmask == nullptr || loopback != pretended) continue;
        if ((at->ifa_flags & IFF_RUNNING) == 0 || static_cast<size_t>(card.count) == kMostAddresses) continue;
        card.interfaces[static_cast<size_t>(card.count++)] = {reinterpret_cast<const sockaddr_in*>(at->ifa_addr)->sin_addr.s_addr,
                                                              reinterpret_cast<const sockaddr_in*>(at->ifa_netmask)->sin_addr.s_addr};
    }
    freeifaddrs(all);
}

// The address of theirs in a network of ours; their first one where there is none, since it may be routed.
std::string reachable(const Card& ours, const Card& theirs) {
    const auto text = [](uint32_t address) {
        std::array<char, INET_ADDRSTRLEN> digits{};
        const in_addr in{address};
        inet_ntop(AF_INET, &in, digits.data(), digits.size());
        return std::string(digits.data());
    };
    for (int i = 0; i < ours.count; ++i) {
        const Interface& own = ours.interfaces[static_cast<size_t>(i)];
        for (int j = 0; j < theirs.count; ++j) {
            const uint32_t address = theirs.interfaces[static_cast<size_t>(j)].address;
            if ((address & own.mask) == (own.address & own.mask)) return text(address);
        }
    }
    return text(theirs.interfaces[0].address);
}

bool all_agree(bool yes) {
    int agreed = yes ? 1 : 0;
    check_mpi(MPI_Allreduce(MPI_IN_PLACE, &agreed, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD), "MPI_Allreduce");
    return agreed == 1;
}

uint64_t fresh_word() {
    std::random_device random;
    return (static_cast<uint64_t>(random()) << 32) | random();
}

}  // namespace

std::unique_ptr<SocketLanes> connect_nodes(Rank rank, const std::vector<int>& nodes, const MpiOptions& options) {
    const bool one_node = std::count(nodes.begin(), nodes.end(), nodes[0]) == static_cast<std::ptrdiff_t>(nodes.size());
    if (one_node || nodes.size() > kMostRanks || options.between_nodes == BetweenNodes::Mpi) return nullptr;
    if (!all_agree(options.between_nodes == BetweenNodes::Sockets || !has_fast_network())) return nullptr;
    Card own{.word = fresh_word()};
    std::optional<Listener> listener;
    std::string why;
    try {
        listener = listen_at("0.0.0.0");
        own.port = listener->port;
        list_interfaces(own, options.ranks_per_node > 0);
    } catch (const Error& e) {
        why = e.what();
    }
    std::vector<Card> cards(nodes.size());
    check_mpi(MPI_Allgather(&own, sizeof(Card), MPI_BYTE, cards.data(), sizeof(Card), MPI_BYTE, MPI_COMM_WORLD), "MPI_Allgather");
    Introduction introduction{.word = std::to_string(cards[0].word), .rank = rank, .kinds = kLanes};
    for (size_t peer = 0; peer < nodes.size(); ++peer) {
        const bool elsewhere = nodes[peer] != nodes[static_cast<size_t>(rank)];
        introduction.places.push_back(elsewhere ? Introduction::Place{reachable(own, cards[peer]), cards[peer].port}
                                                : Introduction::Place{});
    }
    const bool all_listen = std::all_of(cards.begin(), cards.end(), [](const Card& card) { return card.port > 0 && card.count > 0; });
    std::vector<std::vector<Socket>> sockets;
    if (all_listen) {
        try {
            sockets = connect_all(introduction, *listener, Clock::now() + kLimit);
        } catch (const Error& e) {
            why = e.what();
        }
    }
    if (!why.empty()) log_line("note: ", fmt::format("{}; messages between machines go by MPI, which costs more processor time", why));
    if (!all_agree(all_listen && why.empty())) {
        require(options.between_nodes != BetweenNodes::Sockets, "rank {}: not all ranks can reach each other by sockets", rank);
        return nullptr;
    }
    return std::make_unique<SocketLanes>(rank, sockets);
}

}  // namespace convoy
