#include "base/error.h"
#include "comm/communicator.h"

namespace convoy {

// Sorted by lane and group, which every rank does alike: of the communicators not yet made, the first one's ranks all come to it next, so none waits for
// ever.
void Communicators::open(const std::vector<Wanted>& wanted) {
    std::map<std::pair<Lane, std::vector<Rank>>, Channel*> sorted;
    for (const auto& [channel, group] : wanted) {
        const auto [at, added] = sorted.emplace(std::pair(channel->lane(), group), channel);
        CONVOY_CHECK(added || at->second == channel, "two channels on the {} lane", name_of(channel->lane()));
    }
    for (const auto& [key, channel] : sorted) {
        if (made_.count(key)) continue;
        auto communicator = std::make_unique<Communicator>(*channel, key.second);
        if (table_) communicator->set_table(*table_);
        made_.emplace(key, std::move(communicator));
    }
}

Communicator& Communicators::at(const Channel& channel, const std::vector<Rank>& group) const {
    const auto at = made_.find({channel.lane(), group});
    CONVOY_CHECK(at != made_.end(), "no communicator of ranks {} was made on the {} lane", fmt::join(group, ", "), name_of(channel.lane()));
    return *at->second;
}

}  // namespace convoy
