#include "comm/mpi/node_sockets.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <mpi.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <span>

#include "base/error.h"
#include "base/log.h"
#include "comm/mpi/mpi_calls.h"
#include "comm/socket/connect_all.h"
#include "comm/socket/interfaces.h"

namespace convoy {

namespace {

constexpr size_t kMostRanks = 64;                 // each has a connection for each lane to every rank of other nodes
constexpr auto kLimit = std::chrono::seconds(5);  // until all are connected
constexpr size_t kMostAddresses = 8;

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

// The interfaces that a user wants, by name or network; empty: any.
std::string wanted_interfaces(bool pretended) {
    for (const char* variable : {"CONVOY_INTERFACE", "OMPI_MCA_btl_tcp_if_include"})
        if (const char* const text = std::getenv(variable); text && *text && !(pretended && variable[0] == 'O')) return text;
    return "";
}

// In Mbit/s; 0 where the system does not say.
int speed_of(const std::string& name) {
    std::ifstream file("/sys/class/net/" + name + "/speed");
    int speed = 0;
    return file >> speed ? std::max(speed, 0) : 0;
}

// Where this machine can be reached, the fastest first; itself, at the loopback address, only where nodes are pretended.
std::vector<Interface> own_interfaces(bool pretended) {
    ifaddrs* all = nullptr;
    std::vector<Interface> found;
    if (getifaddrs(&all) != 0) return found;
    const std::string wanted = wanted_interfaces(pretended);
    for (const ifaddrs* at = all; at != nullptr; at = at->ifa_next) {
        const bool loopback = (at->ifa_flags & IFF_LOOPBACK) != 0;
        if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET || at->ifa_netmask == nullptr || loopback != pretended) continue;
        if ((at->ifa_flags & IFF_RUNNING) == 0) continue;
        const Interface interface {
            reinterpret_cast<const sockaddr_in*>(at->ifa_addr)->sin_addr.s_addr,
                reinterpret_cast<const sockaddr_in*>(at->ifa_netmask)->sin_addr.s_addr, speed_of(at->ifa_name)
        };
        if (wanted.empty() || names_interface(wanted, at->ifa_name, interface.address)) found.push_back(interface);
    }
    freeifaddrs(all);
    std::stable_sort(found.begin(), found.end(), [](const Interface& a, const Interface& b) { return a.speed > b.speed; });
    return found;
}

std::span<const Interface> interfaces_of(const Card& card) { return {card.interfaces.data(), static_cast<size_t>(card.count)}; }

bool all_agree(bool yes) {
    int agreed = yes ? 1 : 0;
    check_mpi(MPI_Allreduce(MPI_IN_PLACE, &agreed, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD), "MPI_Allreduce");
    return agreed == 1;
}

uint64_t fresh_word() {
    std::random_device random;
    return (static_cast<uint64_t>(random()) << 32) | random();
}

// Why messages between nodes are MPI's affair, as far as no rank need be asked; empty: they are not.
std::string why_mpi(const std::vector<int>& nodes, const MpiOptions& options) {
    if (options.between_nodes == BetweenNodes::Mpi) return "as asked for";
    if (nodes.size() > kMostRanks) return fmt::format("{} ranks are more than the {} that can each be connected", nodes.size(), kMostRanks);
    const bool slow = options.between_nodes == BetweenNodes::Sockets || !has_fast_network();
    return all_agree(slow) ? "" : "there is a network faster than Ethernet";
}

// What keeps the ranks from each other, by what they have told; the same on all of them. Empty: nothing.
std::string why_apart(const std::vector<int>& nodes, const std::vector<Card>& cards, bool pretended) {
    for (size_t r = 0; r < cards.size(); ++r) {
        if (cards[r].port == 0) return fmt::format("rank {} cannot listen", r);
        if (cards[r].count == 0) return fmt::format("rank {} has no network that may be used", r);
        for (size_t peer = 0; peer < r; ++peer)
            if (nodes[peer] != nodes[r] && !reachable(interfaces_of(cards[r]), interfaces_of(cards[peer]), pretended))
                return fmt::format("rank {} knows no address of rank {} that is not its own too", r, peer);
    }
    return "";
}

std::string address_text(uint32_t address) {
    std::array<char, INET_ADDRSTRLEN> digits{};
    const in_addr in{address};
    inet_ntop(AF_INET, &in, digits.data(), digits.size());
    return digits.data();
}

}  // namespace

std::unique_ptr<SocketLanes> connect_nodes(Rank rank, const std::vector<int>& nodes, const MpiOptions& options) {
    const int machines = *std::max_element(nodes.begin(), nodes.end()) + 1;
    if (machines == 1) return nullptr;
    const auto by_mpi = [&](const std::string& why) {
        if (rank == 0) note("messages between {} machines go by MPI: {}", machines, why);
        return nullptr;
    };
    if (const std::string why = why_mpi(nodes, options); !why.empty()) return by_mpi(why);
    const bool pretended = options.ranks_per_node > 0;
    Card own{.word = fresh_word()};
    std::optional<Listener> listener;
    try {
        listener = listen_at("0.0.0.0");
        own.port = listener->port;
    } catch (const Error& e) {
        warn("rank {}: {}", rank, e.what());
    }
    const std::vector<Interface> interfaces = own_interfaces(pretended);
    own.count = static_cast<int32_t>(std::min(interfaces.size(), kMostAddresses));
    std::copy_n(interfaces.begin(), own.count, own.interfaces.begin());
    std::vector<Card> cards(nodes.size());
    check_mpi(MPI_Allgather(&own, sizeof(Card), MPI_BYTE, cards.data(), sizeof(Card), MPI_BYTE, MPI_COMM_WORLD), "MPI_Allgather");
    std::string why = why_apart(nodes, cards, pretended);
    std::vector<std::vector<Socket>> sockets;
    if (why.empty()) {
        Introduction introduction{.word = std::to_string(cards[0].word), .rank = rank, .kinds = kLanes};
        introduction.places.resize(nodes.size());
        for (size_t peer = 0; peer < nodes.size(); ++peer) {
            if (nodes[peer] == nodes[static_cast<size_t>(rank)]) continue;
            // Only ranks before this one are looked for; it is enough that the others have a place.
            const auto address = reachable(interfaces_of(own), interfaces_of(cards[peer]), pretended);
            introduction.places[peer] = {address_text(address.value_or(cards[peer].interfaces[0].address)), cards[peer].port};
        }
        try {
            sockets = connect_all(introduction, *listener, Clock::now() + kLimit);
        } catch (const Error& e) {
            warn("{}", e.what());
            why = "not all ranks can reach each other by sockets";
        }
        if (!all_agree(why.empty())) why = "not all ranks can reach each other by sockets";
    }
    if (!why.empty()) {
        require(options.between_nodes != BetweenNodes::Sockets, "rank {}: messages between machines cannot go by sockets: {}", rank, why);
        return by_mpi(why +
                      ", and MPI's cost more processor time; CONVOY_INTERFACE (mpirun -x CONVOY_INTERFACE=eth0) names the interface, or "
                      "network, that sockets are to use");
    }
    if (rank == 0) {
        const auto at = std::find_if(nodes.begin(), nodes.end(), [](int node) { return node != 0; }) - nodes.begin();
        const auto address = reachable(interfaces_of(cards[static_cast<size_t>(at)]), interfaces_of(own), pretended);
        note("messages between {} machines go by sockets (TCP, at {} on the first)", machines, address_text(address.value_or(0)));
    }
    return std::make_unique<SocketLanes>(rank, sockets);
}

}  // namespace convoy
