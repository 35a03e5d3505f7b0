// Where the threads of a group meet for a collective on each other's memory: each lays down its call and arrives; when all have arrived they work, and
// none leaves before all have finished. Internal to the thread transport.
#pragma once

#include <atomic>
#include <vector>

#include "comm/thread/event.h"

namespace convoy {

class SharedGroup {
  public:
    enum class Outcome : uint8_t { Met, Late, Failed };

    SharedGroup(int size, std::chrono::microseconds spin) : seats_(static_cast<size_t>(size)), event_(spin) {}

    int size() const { return static_cast<int>(seats_.size()); }
    // Lays down the call and waits for all the others. Late or Failed (the run was ended): nobody will touch this rank's memory, and nobody meets here
    // any more.
    Outcome meet(int place, const CollectiveCall& call, Deadline deadline, const std::atomic<bool>& failed);
    // Between meet and leave.
    const CollectiveCall& call(int place) const { return seats_[static_cast<size_t>(place)].call; }
    // Waits until all have finished. Not interrupted: the others only compute, and may be writing to this rank's memory.
    void leave(int place);

  private:
    // One word counts every arrival there ever was; the group meets for the k-th time when it reaches k * size. The top bit closes it: whether it was set
    // before or after the last arrival is the same for all, so either all work or none does.
    static constexpr uint64_t kClosed = uint64_t{1} << 63;
    static constexpr uint64_t count_of(uint64_t word) { return word & ~kClosed; }

    Outcome closed(Deadline deadline, const std::atomic<bool>& failed);

    struct alignas(64) Seat {
        CollectiveCall call;
        uint64_t meetings = 0;  // that this place has arrived at
    };
    std::vector<Seat> seats_;
    alignas(64) std::atomic<uint64_t> arrivals_{0};
    Event event_;
};

}  // namespace convoy
