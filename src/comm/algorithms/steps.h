// What the algorithms are written in: messages between the places of a team, waiting for them, and scratch memory. A team is a group or a part of it
// (the ranks of a node), so that one algorithm can be built of others. Internal to this module.
#pragma once

#include <vector>

#include "comm/channel.h"
#include "comm/combine.h"
#include "tensor/tensor.h"

namespace convoy {

// Thrown by Steps::wait; the communicator makes an Error of it.
struct TimedOut {
    std::vector<Rank> waiting_for;
};

// One communicator's messages in flight. A collective begins it, posts and waits, and leaves nothing in flight.
class Steps {
  public:
    using Index = int;  // of a message of this collective; kNothing for an empty one, which is not sent
    static constexpr Index kNothing = -1;
    // Pieces that may be on their way to this rank at a time. Nor does an exchange send more ahead of what it has received: the rest would fill the wire,
    // and other lanes would wait behind it.
    static constexpr int kWindow = 3;

    Steps(Channel& channel, int tag) : channel_(channel), tag_(tag) {}

    void begin();
    Index send(Rank to, const std::byte* data, int64_t bytes);
    Index receive(Rank from, std::byte* data, int64_t bytes);
    // Waits for one message. On a throw nothing is in flight any more.
    void wait(Index index);
    void wait_all();
    int64_t bytes_sent() const { return sent_; }

    // Large messages go in pieces of at most this size, so that a piece is combined while it is still in the cache, and sending overlaps it.
    int64_t segment_bytes() const { return segment_bytes_; }
    void set_segment_bytes(int64_t bytes) { segment_bytes_ = bytes; }

    // Memory of at least so many bytes that lasts until the next call with the same number (a communicator's own; grows, never shrinks).
    std::byte* scratch(int64_t bytes, int number = 0);

  private:
    void wait(std::span<Request> requests);

    Channel& channel_;
    int tag_;
    Deadline deadline_{};
    std::vector<Request> requests_;
    std::vector<Rank> peers_;
    int64_t sent_ = 0;
    int64_t segment_bytes_ = 1 << 20;
    Buffer scratch_[2];
};

struct Team {
    Steps& steps;
    std::vector<Rank> ranks;
    int place = 0;  // of this rank

    int size() const { return static_cast<int>(ranks.size()); }
    // The rank at a place, which may lie outside 0..size-1 and counts round.
    Rank at(int p) const { return ranks[static_cast<size_t>((p % size() + size()) % size())]; }
    Steps::Index send(int to, const std::byte* data, int64_t bytes) const { return steps.send(at(to), data, bytes); }
    Steps::Index receive(int from, std::byte* data, int64_t bytes) const { return steps.receive(at(from), data, bytes); }
};

// Elements of one type with how to combine them.
struct Elements {
    int64_t size = 1;  // bytes of one
    Combine combine = nullptr;

    int64_t segment_bytes = 0;

    int64_t per_segment() const { return segment_bytes / size; }
};

// Posts sends of `count` elements to a place, in the pieces in which `run` receives them.
void send_pieces(const Team& team, const Elements& elements, int to, const std::byte* data, int64_t count);

// Sends `send_count` elements to a place while it combines `count` elements that come from there into data. `theirs_first` says whose operand
// stands on the left. The two ranges do not overlap. Waits for all that is in flight.
struct CombiningExchange {
    int peer = 0;
    const std::byte* send = nullptr;
    int64_t send_count = 0;
    std::byte* data = nullptr;
    int64_t count = 0;
    bool theirs_first = false;
};
void run(const Team& team, const Elements& elements, const CombiningExchange& exchange);

}  // namespace convoy
