#include "comm/meeting.h"

#include <algorithm>
#include <iterator>

namespace convoy {

Meeting make_meeting(Transport& transport, const std::vector<Rank>& group, Lane lane) {
    const GroupKey key = group_key(group, lane);
    Meeting meeting{.key = key, .begun = &transport.arrivals(key)};
    std::copy_if(group.begin(), group.end(), std::back_inserter(meeting.others), [&](Rank r) { return r != transport.rank(); });
    return meeting;
}

std::string missing_at(Transport& transport, Lane lane, std::span<const Meeting> meetings) {
    std::vector<std::string> missing;
    for (const Meeting& meeting : meetings) {
        const int64_t begun = meeting.begun->load(std::memory_order_relaxed);
        const auto counts = transport.arrivals_of(meeting.key, lane, meeting.others);
        for (size_t i = 0; i < meeting.others.size(); ++i) {
            if (!counts[i])
                missing.push_back(fmt::format("rank {} (not responding)", meeting.others[i]));
            else if (*counts[i] < begun)
                missing.push_back(fmt::format("rank {}", meeting.others[i]));
        }
    }
    return fmt::format("{}", fmt::join(missing, ", "));
}

}  // namespace convoy
