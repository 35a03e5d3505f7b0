// SIGTERM, by which a launcher ends the ranks that are left when one has died. Between it and SIGKILL there is about a second, enough to say what this rank was
// waiting for. Internal to this module.
#pragma once

#include <csignal>

#include <functional>
#include <thread>

namespace convoy {

// Keeps the signal from this thread, and from those that it starts, while it lives: EndSignal takes it.
class HeldSignal {
  public:
    HeldSignal();
    ~HeldSignal();
    HeldSignal(const HeldSignal&) = delete;
    HeldSignal& operator=(const HeldSignal&) = delete;

  private:
    sigset_t before_{};
};

// Calls `report` when the signal comes, on a thread of its own, then lets the signal do what it does to this process. Where the program has a handler of its own that
// comes first: what it begins should not wait.
class EndSignal {
  public:
    explicit EndSignal(std::function<void()> report);
    ~EndSignal();
    EndSignal(const EndSignal&) = delete;
    EndSignal& operator=(const EndSignal&) = delete;

  private:
    void loop();

    std::function<void()> report_;
    int signals_ = -1, stop_ = -1;  // descriptors
    std::thread thread_;
};

}  // namespace convoy
