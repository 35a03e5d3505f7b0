// One rank's end of one lane: messages between two ranks, byte counters by layer, and the time limit of every wait. Used by one thread at a time:
// the thread that runs the instructions of that queue.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "comm/transport.h"

namespace convoy {

// Bytes this rank has sent, and calls, by kind.
struct TrafficCount {
    std::array<int64_t, kTrafficKinds> bytes{}, calls{};

    int64_t bytes_of(Traffic kind) const { return bytes[static_cast<size_t>(kind)]; }
    int64_t calls_of(Traffic kind) const { return calls[static_cast<size_t>(kind)]; }
    int64_t total_bytes() const;
    bool operator==(const TrafficCount&) const = default;
};

struct Outgoing {
    Rank to = 0;
    int tag = 0;
    std::span<const std::byte> data;
};
struct Incoming {
    Rank from = 0;
    int tag = 0;
    std::span<std::byte> data;
};

// A transfer that was posted and not yet waited for.
struct Posted {
    Request request;
    Rank peer = 0;
    bool send = false;
    std::string_view label;
};

class Channel {
  public:
    static constexpr std::chrono::milliseconds kDefaultLimit = std::chrono::minutes(5);

    // The transport must outlive the channel.
    Channel(Transport& transport, Lane lane, std::chrono::milliseconds limit = kDefaultLimit);

    Transport& transport() const { return transport_; }
    Lane lane() const { return lane_; }
    // How long any one wait may take before it ends with an Error that says where, and who is missing.
    void set_limit(std::chrono::milliseconds limit) { limit_ = limit; }
    std::chrono::milliseconds limit() const { return limit_; }

    // A layer's name and its counters; stays valid as long as the channel.
    using Label = std::pair<const std::string, TrafficCount>*;
    Label label_of(std::string_view layer);
    // The layer that all following traffic is charged to and that messages name.
    void set_label(Label label);
    void set_label(std::string_view layer) { set_label(label_of(layer)); }
    std::string_view label() const { return label_; }
    // "of layer "conv1"", or "between steps" where no layer is at work.
    static std::string describe(std::string_view label);
    // "all_reduce of layer "conv1" on the gradient queue (ranks 0, 1)"
    static std::string describe(Lane lane, Traffic kind, std::string_view label, std::span<const Rank> ranks);
    const std::map<std::string, TrafficCount, std::less<>>& counts() const { return counts_; }
    // Sets all counters to zero and keeps the labels, so that counting allocates nothing from then on.
    void clear_counts();

    // One message, waited for. Two ranks that first send to each other and then receive wait for ever: use exchange or post.
    void send(Rank to, int tag, std::span<const std::byte> data);
    void receive(Rank from, int tag, std::span<std::byte> data);
    // All of these at once; returns when all are done. This is how halos travel.
    void exchange(std::span<const Outgoing> sends, std::span<const Incoming> receives);
    // Starts a message; the memory must stay until finish. Every posted one must be finished.
    Posted post(const Outgoing& message);
    Posted post(const Incoming& message);
    void finish(Posted& posted);
    bool done(Posted& posted) { return transport_.done(posted.request); }

    // For collectives, which are built on channels:
    Deadline deadline() const { return Clock::now() + limit_; }
    void charge(Traffic kind, int64_t bytes);
    // The failure of another rank, and what this one was in when it learnt of it: on this lane, then on the others.
    RunFailed failed_in(const RunFailed& failure, Traffic kind, std::string_view label, std::span<const Rank> ranks) const;

  private:
    // As Transport's; the peers are those of the requests.
    bool wait(std::span<Request> requests, std::span<const Posted> posted);
    [[noreturn]] void give_up(std::span<Posted> posted);

    Transport& transport_;
    Lane lane_;
    std::chrono::milliseconds limit_;
    std::map<std::string, TrafficCount, std::less<>> counts_;
    std::string_view label_;           // a key of counts_
    TrafficCount* counted_ = nullptr;  // its value
    std::vector<Posted> exchanged_;    // kept between calls
    std::vector<Request> requests_;
    std::vector<Rank> peers_;
};

// Sets a channel's label for a scope.
class LabelScope {
  public:
    LabelScope(Channel& channel, std::string_view layer) : channel_(channel), before_(channel.label()) { channel.set_label(layer); }
    ~LabelScope() { channel_.set_label(before_); }
    LabelScope(const LabelScope&) = delete;
    LabelScope& operator=(const LabelScope&) = delete;

  private:
    Channel& channel_;
    std::string_view before_;
};

}  // namespace convoy
