#include "comm/lane_work.h"

namespace convoy {

void LaneWork::begin(const TrafficAtWork& what) {
    const std::lock_guard lock(mutex_);
    busy_ = true;
    what_ = what;
    ranks_.assign(what.ranks.begin(), what.ranks.end());
    since_ = std::chrono::steady_clock::now();
}

void LaneWork::end() {
    const std::lock_guard lock(mutex_);
    busy_ = false;
}

std::optional<LaneWork::Now> LaneWork::now() const {
    const std::lock_guard lock(mutex_);
    if (!busy_) return std::nullopt;
    return Now{what_.kind, std::string(what_.label), ranks_, what_.key, since_};
}

}  // namespace convoy
