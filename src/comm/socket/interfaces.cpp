#include "comm/socket/interfaces.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

namespace convoy {

namespace {

// "10.1.0.0/16"
bool in_network(const std::string& network, uint32_t address) {
    const size_t slash = network.find('/');
    if (slash == std::string::npos) return false;
    int bits = -1;
    const char* const end = network.data() + network.size();
    const auto parsed = std::from_chars(network.data() + slash + 1, end, bits);
    in_addr first{};
    if (parsed.ptr != end || bits < 0 || bits > 32 || inet_pton(AF_INET, network.substr(0, slash).c_str(), &first) != 1) return false;
    const uint32_t mask = bits == 0 ? 0 : htonl(~uint32_t{0} << (32 - bits));
    return (first.s_addr & mask) == (address & mask);
}

}  // namespace

std::optional<uint32_t> reachable(std::span<const Interface> ours, std::span<const Interface> theirs, bool one_machine) {
    std::optional<uint32_t> best, first;
    int32_t best_speed = -1;
    for (const Interface& their : theirs) {
        const bool own = std::any_of(ours.begin(), ours.end(), [&](const Interface& our) { return our.address == their.address; });
        if (own && !one_machine) continue;
        if (!first) first = their.address;
        for (const Interface& our : ours) {
            const int32_t speed = std::min(our.speed, their.speed);
            if ((their.address & our.mask) != (our.address & our.mask) || speed <= best_speed) continue;
            best = their.address;
            best_speed = speed;
        }
    }
    return best ? best : first;
}

bool names_interface(std::string_view list, std::string_view name, uint32_t address) {
    while (!list.empty()) {
        const std::string entry(list.substr(0, list.find(',')));
        if (entry == name || in_network(entry, address)) return true;
        list.remove_prefix(std::min(list.size(), entry.size() + 1));
    }
    return false;
}

}  // namespace convoy
