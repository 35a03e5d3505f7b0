// Which of a machine's addresses another machine should connect to. Plain values; addresses in the network's order. Internal to this module.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace convoy {

struct Interface {
    uint32_t address = 0, mask = 0;
    int32_t speed = 0;  // Mbit/s; 0: not known
};

// The address of theirs to connect to. Of those in a network of ours the one with the fastest way to it, which is as fast as the slower end; where there is none
// their first, since it may be routed. An address that is ours too is that of a network inside each machine (a bridge of containers) and leads to ourselves, so it
// counts only where one machine pretends to be several. Nothing when all are.
std::optional<uint32_t> reachable(std::span<const Interface> ours, std::span<const Interface> theirs, bool one_machine);

// Whether a list such as "eth0,10.1.0.0/16" has this interface, by name or network.
bool names_interface(std::string_view list, std::string_view name, uint32_t address);

}  // namespace convoy
