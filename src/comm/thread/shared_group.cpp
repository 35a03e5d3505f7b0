#include "comm/thread/shared_group.h"

namespace convoy {

SharedGroup::Outcome SharedGroup::meet(int place, const CollectiveCall& call, Deadline deadline, const std::atomic<bool>& failed) {
    Seat& seat = seats_[static_cast<size_t>(place)];
    seat.call = call;
    const uint64_t target = ++seat.meetings * seats_.size();
    uint64_t word = arrivals_.load();
    while (!(word & kClosed) && !arrivals_.compare_exchange_weak(word, word + 1)) {
    }
    const auto met = [&] { return count_of(arrivals_.load()) >= target; };
    if (word & kClosed) return closed(deadline, failed);
    if (word + 1 == target) {
        event_.notify();
        return Outcome::Met;
    }
    event_.wait([&] { return met() || (arrivals_.load() & kClosed) || failed.load(); }, deadline);
    if (met()) return Outcome::Met;
    const uint64_t before = arrivals_.fetch_or(kClosed);
    event_.notify();
    return count_of(before) >= target ? Outcome::Met : closed(deadline, failed);
}

// Whoever closed it for being late is about to end the run, and knows better who was missing: wait for that.
SharedGroup::Outcome SharedGroup::closed(Deadline deadline, const std::atomic<bool>& failed) {
    return event_.wait([&] { return failed.load(); }, deadline) ? Outcome::Failed : Outcome::Late;
}

void SharedGroup::leave(int place) {
    const uint64_t target = ++seats_[static_cast<size_t>(place)].meetings * seats_.size();
    if (count_of(arrivals_.fetch_add(1)) + 1 == target) return event_.notify();
    event_.wait([&] { return count_of(arrivals_.load()) >= target; }, Deadline::max());
}

}  // namespace convoy
