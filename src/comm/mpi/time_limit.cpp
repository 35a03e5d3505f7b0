#include "comm/mpi/time_limit.h"

#include <utility>

namespace convoy {

TimeLimit::TimeLimit(std::chrono::milliseconds limit, std::function<void()> late)
    : thread_([this, limit, late = std::move(late)] {
          std::unique_lock lock(mutex_);
          if (over_changed_.wait_for(lock, limit, [this] { return over_; })) return;
          lock.unlock();
          late();
      }) {}

TimeLimit::~TimeLimit() {
    {
        const std::lock_guard lock(mutex_);
        over_ = true;
    }
    over_changed_.notify_all();
    thread_.join();
}

}  // namespace convoy
