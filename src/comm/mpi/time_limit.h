// A limit for calls of MPI that have none: what makes groups and windows, and frees them, waits for all ranks. Internal to this module.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace convoy {

// Calls `late`, on a thread of its own, when it lives longer than the limit.
class TimeLimit {
  public:
    TimeLimit(std::chrono::milliseconds limit, std::function<void()> late);
    ~TimeLimit();
    TimeLimit(const TimeLimit&) = delete;
    TimeLimit& operator=(const TimeLimit&) = delete;

  private:
    std::mutex mutex_;
    std::condition_variable over_changed_;
    bool over_ = false;
    std::thread thread_;
};

}  // namespace convoy
