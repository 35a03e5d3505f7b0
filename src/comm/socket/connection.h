// Messages between two ranks on one lane, over one connection. Nothing waits here: push() and pull() move what can be moved. Used by one thread at a time.
#pragma once

#include <deque>
#include <memory>

#include "comm/socket/sockets.h"

namespace convoy {

// A posted send or receive.
struct SocketMessage {
    struct Header {
        int64_t tag = 0;
        uint64_t bytes = 0;
    };
    Lane lane{};
    Rank peer = 0;
    bool send = false;
    Header header;
    std::byte* data = nullptr;
    size_t moved = 0;            // of a send: header and data
    Clock::time_point posted{};  // a send
    bool done = false, wrong_size = false;
};

class Connection {
  public:
    // Receives from one socket and sends to another, which may be the same. Without a socket it is closed from the start.
    Connection(Socket in, Socket out);
    explicit Connection(Socket both);

    int in() const { return in_.get(); }
    int out() const { return out_ ? out_.get() : in_.get(); }
    bool wants_to_send() const { return !sends_.empty(); }
    // What goes next, if nothing of it has gone yet.
    const SocketMessage* next() const { return sends_.empty() || sends_.front()->moved > 0 ? nullptr : sends_.front(); }
    // Whether much of what has gone is still under way; the end of a message may be acknowledged long after it has come. Any thread may ask.
    bool is_sending() const { return unacknowledged(out_ ? out_ : in_) > (16 << 10); }
    bool closed() const { return closed_; }

    // The message must stay where it is until it is done or removed.
    void post(SocketMessage& message);
    void remove(SocketMessage& message);
    void push();
    void pull();

    // Before a wait for this receive: nothing wakes it before so many bytes are there that the receive can be done with them.
    void wake_for(const SocketMessage& receive);
    // Before a wait for something else: any byte wakes it.
    void wake_for_any() { wake_at_least(1); }

  private:
    // What comes: the header, then the data, into the memory of the receive that waits for it or, when there is none yet, into memory of its own.
    struct Arrival {
        SocketMessage::Header header;
        size_t header_read = 0, read = 0;
        SocketMessage* target = nullptr;
        std::vector<std::byte> kept;
    };
    void begin_body();
    std::byte* body();
    void finish_body();
    void wake_at_least(size_t bytes);

    Socket in_, out_;
    bool closed_ = false;
    size_t woken_at_ = 1;
    std::deque<SocketMessage*> sends_, receives_;
    Arrival arrival_;
    std::deque<Arrival> early_;  // whole ones that nobody had asked for
};

}  // namespace convoy
