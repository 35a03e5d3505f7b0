// What carries bytes between the ranks of a run: threads of one process, processes under MPI, or processes that found each other by a file. A transport knows messages, who has arrived
// where, and how to end the run; collectives are built on it (communicator.h), except those it does better itself (Port).
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "comm/collective.h"
#include "comm/lane_work.h"
#include "place/grid.h"

namespace convoy {

// Lanes of traffic never wait for each other. One thread of a rank uses a lane at a time. Late is for gradients that are needed late in the next step; Service
// for what is no part of a step: metrics, checkpoints, measurements.
enum class Lane : uint8_t { Activation, Gradient, Late, Service };
constexpr int kLanes = 4;
std::string_view name_of(Lane lane);

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

// Some rank, perhaps on another machine, has ended the run; the text names it and says why.
class RunFailed : public Error {
  public:
    using Error::Error;
};

// Says of the calling thread that another computes while it waits, so that it waits without using the core.
void run_beside_computation();

// A posted send or receive. All but whether it is active is the transport's own affair.
struct Request {
    uint64_t handle = 0;
    bool active = false;
    Lane lane = Lane::Service;
    bool by_socket = false;  // where a transport has two ways
};

struct Address {
    Lane lane = Lane::Service;
    Rank peer = 0;
    int tag = 0;  // 0 to kMaxTag for callers; collectives use higher ones
};
constexpr int kMaxTag = 16383;

// Which communicator: the same on all its ranks, different for other groups and lanes.
using GroupKey = uint64_t;
GroupKey group_key(const std::vector<Rank>& group, Lane lane);

// Whether all ranks of a group are on one node, given the node of every rank.
bool on_one_node(const std::vector<int>& nodes, const std::vector<Rank>& group);

// A transport's own collectives for one group on one lane.
class Port {
  public:
    virtual ~Port() = default;
    // Whether it can run this call.
    virtual bool offers(const CollectiveCall& call) const = 0;
    // Runs it; all ranks of the group must. False when the deadline passed; the memory is then not touched any more. RunFailed as in
    // Transport::wait.
    virtual bool run(const CollectiveCall& call, Deadline deadline) = 0;
};

class Transport {
  public:
    virtual ~Transport() = default;

    Rank rank() const { return rank_; }
    int size() const { return static_cast<int>(nodes_.size()); }
    // "thread", "mpi" or "socket"
    const std::string& name() const { return name_; }
    // The node of every rank, numbered from 0.
    const std::vector<int>& nodes() const { return nodes_; }
    // What carries messages between nodes: "mpi" or "sockets"; the transport's name where there is one node, or one way.
    virtual std::string between_nodes() const { return name_; }
    // What this rank does on a lane, as channels and communicators note it.
    LaneWork& work(Lane lane) { return work_[static_cast<size_t>(lane)]; }
    // What all lanes were in the middle of when the first of them learnt that the run had ended and asked: the same for those that learn of it later.
    using Works = std::array<std::optional<LaneWork::Now>, kLanes>;
    const Works& works_at_end();

    // Posts a message; the memory must stay until it is done. Messages with the same lane, peer and tag match in the order in which they were
    // posted; their sizes must be equal.
    virtual Request send(const Address& to, std::span<const std::byte> data) = 0;
    virtual Request receive(const Address& from, std::span<std::byte> data) = 0;
    // Whether it is done (inactive ones are); drives progress.
    virtual bool done(Request& request) = 0;
    // Waits until all are done. False when the deadline passed: those not done are still active. RunFailed when the run was ended: all of them
    // are withdrawn then.
    virtual bool wait(std::span<Request> requests, Deadline deadline) = 0;
    // Gives up what is not done. Its memory is not touched afterwards.
    virtual void withdraw(std::span<Request> requests) = 0;

    // How many collectives this rank has begun in a communicator. The reference stays valid; the communicator counts it up.
    virtual std::atomic<int64_t>& arrivals(GroupKey key) = 0;
    // The same of other ranks, for messages: nothing for a rank that does not respond. May take seconds.
    virtual std::vector<std::optional<int64_t>> arrivals_of(GroupKey key, Lane lane, std::span<const Rank> ranks) = 0;

    // The transport's own collectives for a group that contains this rank. All ranks of the group must call it, groups in the same order
    // on every rank and from one thread at a time (Communicators does so), the one that uses the service lane. Error names the ranks that do not come.
    virtual std::unique_ptr<Port> open(const std::vector<Rank>& group, Lane lane) = 0;

    // The end of a run that went well: waits until all ranks have come here, because others may still be sending. Error names those that do not come; RunFailed as
    // in wait. What a transport does at its own end, unless it was done before.
    virtual void leave() {}

    // Ends the run: every wait of every rank ends with RunFailed, whose text names this rank and holds `why`. Under MPI this prints the text
    // and ends all processes; it does not return. The first call counts.
    virtual void fail_all(const std::string& why) = 0;
    // Why the run was ended, if it was and this rank lives to tell. For what waits by itself, without the transport.
    virtual std::optional<std::string> failure() const { return std::nullopt; }

  protected:
    Transport(std::string name, Rank rank, std::vector<int> nodes) : name_(std::move(name)), rank_(rank), nodes_(std::move(nodes)) {}

  private:
    std::string name_;
    Rank rank_ = 0;
    std::vector<int> nodes_;
    std::array<LaneWork, kLanes> work_;
    std::once_flag ended_;
    Works at_end_;
};

}  // namespace convoy
