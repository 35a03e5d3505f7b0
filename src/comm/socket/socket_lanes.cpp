#include "comm/socket/socket_lanes.h"

#include <poll.h>

#include "base/error.h"

namespace convoy {

namespace {

constexpr std::chrono::milliseconds kLookAgain{1};    // where a lane gives way
constexpr std::chrono::milliseconds kLongestWay{20};  // that a message gives to others

// NOLINTNEXTLINE(performance-no-int-to-ptr): what a handle means is the transport's own affair
SocketMessage& message_of(const Request& request) { return *reinterpret_cast<SocketMessage*>(request.handle); }

}  // namespace

std::string gone_text(Rank rank) { return fmt::format("rank {} is gone: its process has ended or cannot be reached", rank); }

// Somebody waits for an activation, and it is short: it does not go behind the gradients that the system has been given already.
SocketLanes::SocketLanes(Rank rank, std::vector<std::vector<Socket>>& sockets) : rank_(rank), lanes_(static_cast<size_t>(kLanes)) {
    for (Rank peer = 0; peer < static_cast<Rank>(sockets.size()); ++peer) {
        for (int lane = 0; lane < kLanes; ++lane) {
            auto& list = lanes_[static_cast<size_t>(lane)];
            if (peer == rank) {
                auto [in, out] = connected_pair();
                list.emplace_back(std::move(in), std::move(out));
            } else {
                if (static_cast<Lane>(lane) == Lane::Activation) make_urgent(sockets[static_cast<size_t>(peer)][static_cast<size_t>(lane)]);
                list.emplace_back(std::move(sockets[static_cast<size_t>(peer)][static_cast<size_t>(lane)]));
            }
        }
    }
}

SocketLanes::~SocketLanes() = default;

Request SocketLanes::send(const Address& to, std::span<const std::byte> data) {
    // Only read: a receive writes to the same field.
    return post({.lane = to.lane,
                 .peer = to.peer,
                 .send = true,
                 .header = {to.tag, data.size()},
                 .data = const_cast<std::byte*>(data.data()),
                 .posted = Clock::now()});
}

Request SocketLanes::receive(const Address& from, std::span<std::byte> data) {
    return post({.lane = from.lane, .peer = from.peer, .header = {from.tag, data.size()}, .data = data.data()});
}

Request SocketLanes::post(const SocketMessage& message) {
    Pool& pool = pools_[static_cast<size_t>(message.lane)];
    if (pool.free.empty()) {
        pool.all.push_back(std::make_unique<SocketMessage>());
        pool.free.push_back(pool.all.back().get());
    }
    SocketMessage& kept = *pool.free.back();
    pool.free.pop_back();
    kept = message;
    Connection& connection = connection_of(kept);
    connection.post(kept);
    if (kept.send) push(kept.lane, connection);
    return {reinterpret_cast<uint64_t>(&kept), true};
}

void SocketLanes::progress(Lane which) {
    for (Connection& c : lane(which)) {
        push(which, c);
        c.pull();
    }
}

// They would share the wire evenly otherwise. Not for ever: lanes never wait for each other, and the other's bytes may be under way for as long as their receiver looks at other things.
bool SocketLanes::gives_way(Lane which, const Connection& c) {
    const SocketMessage* const next = which == Lane::Late ? c.next() : nullptr;
    return next != nullptr && lane(Lane::Gradient)[static_cast<size_t>(next->peer)].is_sending() &&
           Clock::now() - next->posted < kLongestWay;
}

void SocketLanes::push(Lane which, Connection& c) {
    if (!gives_way(which, c)) c.push();
}

bool SocketLanes::done(const Request& request) { return message_of(request).done; }

Lane SocketLanes::lane_of(const Request& request) { return message_of(request).lane; }

bool SocketLanes::lost(const Request& request) { return connection_of(message_of(request)).closed(); }

Rank SocketLanes::peer_of(const Request& request) { return message_of(request).peer; }

void SocketLanes::finish(Request& request) {
    const SocketMessage message = message_of(request);
    release(request);
    require(!message.wrong_size, "a message from rank {} to rank {} with tag {} has not the size that is expected", message.peer, rank_,
            message.header.tag);
}

void SocketLanes::withdraw(Request& request) {
    SocketMessage& message = message_of(request);
    connection_of(message).remove(message);
    release(request);
}

void SocketLanes::release(Request& request) {
    SocketMessage& message = message_of(request);
    pools_[static_cast<size_t>(message.lane)].free.push_back(&message);
    request = {};
}

void SocketLanes::sleep(const Request& request, std::chrono::milliseconds longest) {
    const SocketMessage& message = message_of(request);
    std::vector<pollfd>& lines = polled_[static_cast<size_t>(message.lane)];
    lines.clear();
    for (Connection& c : lane(message.lane)) {
        if (c.closed()) continue;
        if (!message.send && &c == &connection_of(message))
            c.wake_for(message);
        else
            c.wake_for_any();
        lines.push_back({c.in(), POLLIN, 0});
        if (gives_way(message.lane, c))
            longest = std::min(longest, kLookAgain);
        else if (c.wants_to_send())
            lines.push_back({c.out(), POLLOUT, 0});
    }
    ::poll(lines.data(), lines.size(), static_cast<int>(longest.count()));
}

}  // namespace convoy
