// Ranks that are processes which found each other by a file: on a machine without MPI. Between any two there is a connection for each lane, which one thread at a
// time moves along while it waits, and one for control.
#include <poll.h>

#include <algorithm>
#include <array>
#include <exception>

#include "base/error.h"
#include "comm/channel.h"
#include "comm/launch.h"
#include "comm/socket/connection.h"
#include "comm/socket/control.h"
#include "comm/socket/rendezvous.h"

namespace convoy {

namespace {

constexpr int kLookMs = 20;  // how long a wait may take before it is seen that the run was ended

class NoPort : public Port {
  public:
    bool offers(const CollectiveCall&) const override { return false; }
    bool run(const CollectiveCall& call, Deadline) override { fail("sockets have no {} of their own", name_of(call.kind)); }
};

class SocketTransport : public Transport {
  public:
    SocketTransport(const RendezvousOptions& options, Connections connections)
        : Transport("socket", options.rank, connections.nodes), lanes_(static_cast<size_t>(kLanes)) {
        std::vector<Socket> controls;
        for (Rank peer = 0; peer < size(); ++peer) {
            auto& sockets = connections.of[static_cast<size_t>(peer)];
            for (int lane = 0; lane < kLanes; ++lane) {
                auto& list = lanes_[static_cast<size_t>(lane)];
                if (peer == rank()) {
                    auto [in, out] = connected_pair();
                    list.emplace_back(std::move(in), std::move(out));
                } else {
                    list.emplace_back(std::move(sockets[static_cast<size_t>(lane)]));
                }
            }
            controls.push_back(std::move(sockets[kControl]));
        }
        control_ = std::make_unique<SocketControl>(rank(), std::move(controls), options.answer_limit);
    }

    // Nobody leaves while others may still be sending.
    ~SocketTransport() override {
        if (std::uncaught_exceptions() == 0 && !control_->failed()) control_->leave(Channel::kDefaultLimit);
    }

    Request send(const Address& to, std::span<const std::byte> data) override {
        // Only read: a receive writes to the same field.
        return post(
            {.lane = to.lane, .peer = to.peer, .send = true, .header = {to.tag, data.size()}, .data = const_cast<std::byte*>(data.data())});
    }

    Request receive(const Address& from, std::span<std::byte> data) override {
        return post({.lane = from.lane, .peer = from.peer, .header = {from.tag, data.size()}, .data = data.data()});
    }

    bool done(Request& request) override {
        if (!request.active) return true;
        SocketMessage& message = message_of(request);
        for (Connection& c : lane(message.lane)) c.progress();
        if (message.done) {
            finish(request);
            return true;
        }
        throw_if_failed();
        return false;
    }

    bool wait(std::span<Request> requests, Deadline deadline) override {
        for (Request& request : requests) {
            if (!request.active) continue;
            SocketMessage& message = message_of(request);
            while (!message.done) {
                for (Connection& c : lane(message.lane)) c.progress();
                if (message.done) break;
                if (control_->failed()) {
                    withdraw(requests);
                    throw_if_failed();
                }
                if (Clock::now() >= deadline) return false;
                sleep_until_something(message, deadline);
            }
            finish(request);
        }
        return true;
    }

    void withdraw(std::span<Request> requests) override {
        for (Request& request : requests) {
            if (!request.active) continue;
            SocketMessage& message = message_of(request);
            connection_of(message).remove(message);
            release(request);
        }
    }

    std::atomic<int64_t>& arrivals(GroupKey key) override { return control_->arrivals(key); }
    std::vector<std::optional<int64_t>> arrivals_of(GroupKey key, Lane, std::span<const Rank> ranks) override {
        return control_->ask(key, ranks);
    }
    std::unique_ptr<Port> open(const std::vector<Rank>&, Lane) override { return std::make_unique<NoPort>(); }
    void fail_all(const std::string& why) override { control_->fail_all(why); }
    std::optional<std::string> failure() const override { return control_->failure(); }

  private:
    std::vector<Connection>& lane(Lane lane) { return lanes_[static_cast<size_t>(lane)]; }
    Connection& connection_of(const SocketMessage& m) { return lane(m.lane)[static_cast<size_t>(m.peer)]; }
    // NOLINTNEXTLINE(performance-no-int-to-ptr): what a handle means is the transport's own affair
    static SocketMessage& message_of(const Request& request) { return *reinterpret_cast<SocketMessage*>(request.handle); }

    void throw_if_failed() const {
        if (const auto why = control_->failure()) throw RunFailed(*why);
    }

    Request post(const SocketMessage& message) {
        throw_if_failed();
        Pool& pool = pools_[static_cast<size_t>(message.lane)];
        if (pool.free.empty()) {
            pool.all.push_back(std::make_unique<SocketMessage>());
            pool.free.push_back(pool.all.back().get());
        }
        SocketMessage& kept = *pool.free.back();
        pool.free.pop_back();
        kept = message;
        connection_of(kept).post(kept);
        return {reinterpret_cast<uint64_t>(&kept), true};
    }

    void finish(Request& request) {
        const SocketMessage message = message_of(request);
        release(request);
        require(!message.wrong_size, "a message from rank {} to rank {} with tag {} has not the size that is expected", message.peer,
                rank(), message.header.tag);
    }

    void release(Request& request) {
        SocketMessage& message = message_of(request);
        pools_[static_cast<size_t>(message.lane)].free.push_back(&message);
        request = {};
    }

    void sleep_until_something(const SocketMessage& message, Deadline deadline) {
        std::vector<pollfd>& lines = polled_[static_cast<size_t>(message.lane)];
        lines.clear();
        for (Connection& c : lane(message.lane)) {
            if (c.closed()) continue;  // its end is told by the control line
            if (!message.send && &c == &connection_of(message))
                c.wake_for(message);
            else
                c.wake_for_any();
            lines.push_back({c.in(), POLLIN, 0});
            if (c.wants_to_send()) lines.push_back({c.out(), POLLOUT, 0});
        }
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
        ::poll(lines.data(), lines.size(), static_cast<int>(std::clamp<int64_t>(left, 0, kLookMs)));
    }

    // Messages are kept and used again; each lane has its own, because each lane has its own thread.
    struct Pool {
        std::vector<std::unique_ptr<SocketMessage>> all;
        std::vector<SocketMessage*> free;
    };

    std::vector<std::vector<Connection>> lanes_;  // by lane and peer
    std::array<Pool, kLanes> pools_;
    std::array<std::vector<pollfd>, kLanes> polled_;
    std::unique_ptr<SocketControl> control_;
};

}  // namespace

std::unique_ptr<Transport> make_socket_transport(const RendezvousOptions& options) {
    return std::make_unique<SocketTransport>(options, meet(options));
}

}  // namespace convoy
