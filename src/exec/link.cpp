#include "exec/link.h"

#include <numeric>

namespace convoy {

Link::Link(Transport& transport, std::chrono::milliseconds limit) : transport_(transport) {
    for (int lane = 0; lane < kLanes; ++lane)
        channels_[static_cast<size_t>(lane)] = std::make_unique<Channel>(transport, static_cast<Lane>(lane), limit);
}

Communicator& Link::communicator(Lane lane, const std::vector<Rank>& group) {
    auto& made = communicators_[{lane, group}];
    if (!made) made = std::make_unique<Communicator>(channel(lane), group);
    return *made;
}

Communicator& Link::everyone() {
    std::vector<Rank> all(static_cast<size_t>(size()));
    std::iota(all.begin(), all.end(), 0);
    return communicator(Lane::Service, all);
}

}  // namespace convoy
