// Where the messages for one rank on one lane find each other. A send that comes first waits here for its receive, a receive for its send; whoever comes
// second copies, once, from the sender's memory to the receiver's, outside the lock. Internal to the thread transport.
#pragma once

#include <atomic>
#include <deque>
#include <mutex>

#include "comm/thread/event.h"

namespace convoy {

// A posted send or receive.
struct Message {
    enum class State : uint8_t { Waiting, Copying, Done, WrongSize };

    bool send = false;
    Rank from = 0, to = 0;
    Lane lane = Lane::Service;
    int tag = 0;
    std::byte* data = nullptr;  // of a send only read
    size_t bytes = 0;
    Event* owner = nullptr;  // who waits for it
    std::atomic<State> state{State::Waiting};

    bool over() const { return state.load() >= State::Done; }
};

class Mailbox {
  public:
    // The oldest message that is the other half of this one: it is taken out and marked as being copied. If there is none, `message` waits here, and
    // nothing is returned.
    Message* match_or_keep(Message& message);
    // Takes a waiting message out; false when it is not here any more because its other half has come.
    bool remove(Message& message);

  private:
    std::mutex mutex_;
    std::deque<Message*> sends_, receives_;
};

}  // namespace convoy
