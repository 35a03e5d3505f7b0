// Messages to other ranks, over a connection to each of them for each lane. Nothing waits here but sleep(). A lane is used by one thread at a time. Internal to this module.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "comm/socket/connection.h"

struct pollfd;

namespace convoy {

// "rank 1 is gone: its process has ended or cannot be reached"
std::string gone_text(Rank rank);

class SocketLanes {
  public:
    // By peer and lane; of the sockets of a peer the first are those of the lanes. There is none to a peer that is not to be reached this way; the rank's own are
    // made here.
    SocketLanes(Rank rank, std::vector<std::vector<Socket>>& sockets);
    ~SocketLanes();

    Request send(const Address& to, std::span<const std::byte> data);
    Request receive(const Address& from, std::span<std::byte> data);
    // Moves what can be moved on a lane.
    void progress(Lane lane);
    static bool done(const Request& request);
    // Of one that is done: gives its memory back. Error when its size was not what was expected.
    void finish(Request& request);
    void withdraw(Request& request);
    static Lane lane_of(const Request& request);
    // Of one that is not done: whether the connection that it needs has closed.
    bool lost(const Request& request);
    static Rank peer_of(const Request& request);
    // Until there may be progress for this one, or for about so long.
    void sleep(const Request& request, std::chrono::milliseconds longest);

  private:
    std::vector<Connection>& lane(Lane lane) { return lanes_[static_cast<size_t>(lane)]; }
    Connection& connection_of(const SocketMessage& m) { return lane(m.lane)[static_cast<size_t>(m.peer)]; }
    Request post(const SocketMessage& message);
    // Whether a lane's next message to a peer waits until what is more urgent has gone: gradients that are needed late do for the others.
    bool gives_way(Lane which, const Connection& c);
    void push(Lane which, Connection& c);
    void release(Request& request);

    // Messages are kept and used again; each lane has its own, because each lane has its own thread.
    struct Pool {
        std::vector<std::unique_ptr<SocketMessage>> all;
        std::vector<SocketMessage*> free;
    };

    Rank rank_;
    std::vector<std::vector<Connection>> lanes_;  // by lane and peer
    std::array<Pool, kLanes> pools_;
    std::array<std::vector<pollfd>, kLanes> polled_;
};

}  // namespace convoy
