// A rank's place among the others: its transport, one channel for each lane, and the communicators its programs need. Shared by all programs of the rank.
#pragma once

#include <array>
#include <chrono>
#include <memory>

#include "comm/communicator.h"

namespace convoy {

class Link {
  public:
    // The transport must outlive the link.
    explicit Link(Transport& transport, std::chrono::milliseconds limit = Channel::kDefaultLimit);

    Rank rank() const { return transport_.rank(); }
    int size() const { return transport_.size(); }
    Transport& transport() { return transport_; }
    Channel& channel(Lane lane) { return *channels_[static_cast<size_t>(lane)]; }

    // A communicator of a group on a lane; made when first asked for, which is collective over the group.
    Communicator& communicator(Lane lane, const std::vector<Rank>& group);
    // All ranks, on the service lane.
    Communicator& everyone();

  private:
    Transport& transport_;
    std::array<std::unique_ptr<Channel>, kLanes> channels_;
    std::map<std::pair<Lane, std::vector<Rank>>, std::unique_ptr<Communicator>> communicators_;
};

}  // namespace convoy
