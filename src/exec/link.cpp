#include "exec/link.h"

#include <numeric>

#include "base/error.h"

namespace convoy {

Link::Link(Transport& transport, std::chrono::milliseconds limit) : transport_(transport) {
    for (int lane = 0; lane < kLanes; ++lane)
        channels_[static_cast<size_t>(lane)] = std::make_unique<Channel>(transport, static_cast<Lane>(lane), limit);
}

void Link::open(const std::vector<Group>& groups) {
    std::vector<Communicators::Wanted> wanted;
    for (const auto& [lane, group] : groups) wanted.emplace_back(&channel(lane), group);
    communicators_.open(wanted);
}

Communicator& Link::communicator(Lane lane, const std::vector<Rank>& group) {
    open({{lane, group}});
    return communicators_.at(channel(lane), group);
}

DeviceTraffic* Link::device_traffic(const DeviceEndpoint& device) {
    if (!device_) {
        HostLanes host{.communicators = &communicators_};
        for (int lane = 0; lane < kLanes; ++lane) host.channels[static_cast<size_t>(lane)] = &channel(static_cast<Lane>(lane));
        device_traffic_ = connect_(device, host, wanted_);
        device_ = device.number;
    }
    CONVOY_CHECK(*device_ == device.number, "rank {} had GPU {}, now GPU {}", rank(), *device_, device.number);
    return device_traffic_.get();
}

Communicator& Link::everyone() {
    std::vector<Rank> all(static_cast<size_t>(size()));
    std::iota(all.begin(), all.end(), 0);
    return communicator(Lane::Service, all);
}

}  // namespace convoy
