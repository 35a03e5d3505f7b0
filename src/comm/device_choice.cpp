#include "comm/device_choice.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/error.h"
#include "base/suggest.h"

namespace convoy {

namespace {

constexpr std::array<std::string_view, 3> kTransports{"auto", "nccl", "host"};

std::string ranks_text(const std::vector<Rank>& ranks) {
    return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "));
}

}  // namespace

std::string_view name_of(DeviceTransport transport) { return kTransports[static_cast<size_t>(transport)]; }

DeviceTransport device_transport_named(std::string_view name) {
    const auto at = std::find(kTransports.begin(), kTransports.end(), name);
    require(at != kTransports.end(), "unknown transport between GPUs \"{}\", expected one of {}", name, fmt::join(kTransports, ", "));
    return static_cast<DeviceTransport>(at - kTransports.begin());
}

int device_of(Rank rank, const std::vector<int>& nodes, int first, int count) {
    require(first < count, "there is no GPU {}; this machine has {} (0 to {})", first, count, count - 1);
    const auto self = nodes.begin() + rank;
    const auto before = std::count(nodes.begin(), self, *self);  // ranks of the same node
    return static_cast<int>((first + before) % count);
}

std::string why_not_nccl(const std::vector<RankDevice>& ranks) {
    std::map<std::string, std::vector<Rank>> sharing;
    for (size_t r = 0; r < ranks.size(); ++r) {
        if (!ranks[r].nccl) return fmt::format("rank {} has no NCCL: {}", r, ranks[r].nccl_detail);
        if (ranks[r].nccl_detail != ranks[0].nccl_detail)
            return fmt::format("rank 0 has {}, rank {} has {}", ranks[0].nccl_detail, r, ranks[r].nccl_detail);
        sharing[ranks[r].device.identity].push_back(static_cast<Rank>(r));
    }
    for (const auto& [identity, group] : sharing)
        if (group.size() > 1) return fmt::format("{} share one GPU, which NCCL does not support", ranks_text(group));
    return "";
}

std::string devices_text(const std::vector<RankDevice>& ranks) {
    const bool nodes = std::any_of(ranks.begin(), ranks.end(), [&](const RankDevice& r) { return r.node != ranks[0].node; });
    std::map<std::pair<int, int>, std::vector<Rank>> users;  // by node and number
    for (size_t r = 0; r < ranks.size(); ++r) users[{ranks[r].node, ranks[r].device.number}].push_back(static_cast<Rank>(r));
    std::vector<std::string> parts;
    for (const auto& [place, group] : users)
        parts.push_back(fmt::format("GPU {}{} ({}) for {}", place.second, nodes ? fmt::format(" of node {}", place.first) : "",
                                    ranks[static_cast<size_t>(group[0])].device.name, ranks_text(group)));
    return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace convoy
