// Who has not come to a collective: every rank counts what it has begun, for each group that meets, and asks the others when a wait has been too long.
// Internal to this module.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "comm/transport.h"

namespace convoy {

// A group that meets on a lane, as one of its ranks sees it.
struct Meeting {
    GroupKey key = 0;
    std::vector<Rank> others;
    std::atomic<int64_t>* begun = nullptr;  // how often this rank has come
};
// Of a rank with these, itself among them or not.
Meeting make_meeting(Transport& transport, const std::vector<Rank>& group, Lane lane);

// "rank 1, rank 3 (not responding)": those that have come less often than this rank; empty when all have come. May take seconds.
std::string missing_at(Transport& transport, Lane lane, std::span<const Meeting> meetings);

}  // namespace convoy
