// What each lane of a rank is in the middle of, for what is said when the run ends meanwhile.
#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/collective.h"
#include "place/grid.h"

namespace convoy {

// A collective, or messages between this rank and others.
struct TrafficAtWork {
    Traffic kind = Traffic::Transfer;
    std::string_view label;       // the layer's; stays valid while the work lasts
    std::span<const Rank> ranks;  // the group, or the other ends of the messages
    uint64_t key = 0;             // by which the group counts its meetings
};

class LaneWork {
  public:
    // The same with memory of its own.
    struct Now {
        Traffic kind = Traffic::Transfer;
        std::string label;
        std::vector<Rank> ranks;
        uint64_t key = 0;
        std::chrono::steady_clock::time_point since;
    };
    void begin(const TrafficAtWork& what);
    void end();
    // By any thread.
    std::optional<Now> now() const;

  private:
    mutable std::mutex mutex_;
    bool busy_ = false;
    TrafficAtWork what_;
    std::vector<Rank> ranks_;  // kept, so that nothing is allocated from step to step
    std::chrono::steady_clock::time_point since_;
};

// From its beginning to its end.
class LaneWorkScope {
  public:
    LaneWorkScope(LaneWork& work, const TrafficAtWork& what) : work_(work) { work_.begin(what); }
    ~LaneWorkScope() { work_.end(); }
    LaneWorkScope(const LaneWorkScope&) = delete;
    LaneWorkScope& operator=(const LaneWorkScope&) = delete;

  private:
    LaneWork& work_;
};

}  // namespace convoy
