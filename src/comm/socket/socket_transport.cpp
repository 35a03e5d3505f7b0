// Ranks that are processes which found each other by a file: on a machine without MPI. Between any two there is a connection for each lane, which one thread at a
// time moves along while it waits, and one for control.
#include <algorithm>
#include <exception>
#include <utility>

#include "base/log.h"
#include "comm/launch.h"
#include "comm/patience.h"
#include "comm/socket/control.h"
#include "comm/socket/rendezvous.h"
#include "comm/socket/socket_lanes.h"

namespace convoy {

namespace {

constexpr std::chrono::milliseconds kLook{20};     // how long a wait may take before it is seen that the run was ended
constexpr std::chrono::milliseconds kReason{500};  // how long after a connection has closed its rank's reason may come

class NoPort : public Port {
  public:
    bool offers(const CollectiveCall&) const override { return false; }
    bool run(const CollectiveCall& call, Deadline) override { fail("sockets have no {} of their own", name_of(call.kind)); }
};

class SocketTransport : public Transport {
  public:
    SocketTransport(const RendezvousOptions& options, Connections connections)
        : Transport("socket", options.rank, connections.nodes), lanes_(options.rank, connections.of), limit_(options.limit) {
        std::vector<Socket> controls;
        for (auto& sockets : connections.of) controls.push_back(std::move(sockets[kControl]));
        control_ = std::make_unique<SocketControl>(rank(), std::move(controls), options.answer_limit);
    }

    ~SocketTransport() override {
        if (std::uncaught_exceptions() > 0 || control_->failed()) return;
        try {
            leave();
        } catch (const Error& e) {
            log_line("error: ", e.what());
            control_->fail_all(e.what());
        }
    }

    Request send(const Address& to, std::span<const std::byte> data) override {
        throw_if_failed();
        return lanes_.send(to, data);
    }

    Request receive(const Address& from, std::span<std::byte> data) override {
        throw_if_failed();
        return lanes_.receive(from, data);
    }

    bool done(Request& request) override {
        if (!request.active) return true;
        lanes_.progress(SocketLanes::lane_of(request));
        if (SocketLanes::done(request)) {
            lanes_.finish(request);
            return true;
        }
        throw_if_failed();
        return false;
    }

    bool wait(std::span<Request> requests, Deadline deadline) override {
        for (Request& request : requests) {
            if (!request.active) continue;
            Glance glance;
            while (!SocketLanes::done(request)) {
                lanes_.progress(SocketLanes::lane_of(request));
                if (SocketLanes::done(request)) break;
                if (lanes_.lost(request)) control_->wait_for_failure(kReason);
                if (control_->failed() || lanes_.lost(request)) {
                    const Rank peer = SocketLanes::peer_of(request);
                    withdraw(requests);
                    throw_if_failed();
                    throw RunFailed(gone_text(peer));
                }
                if (glance.pause()) continue;
                const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
                if (left.count() <= 0) return false;
                lanes_.sleep(request, std::min(left, kLook));
            }
            lanes_.finish(request);
        }
        return true;
    }

    void withdraw(std::span<Request> requests) override {
        for (Request& request : requests)
            if (request.active) lanes_.withdraw(request);
    }

    std::atomic<int64_t>& arrivals(GroupKey key) override { return control_->arrivals(key); }
    std::vector<std::optional<int64_t>> arrivals_of(GroupKey key, Lane, std::span<const Rank> ranks) override {
        return control_->ask(key, ranks);
    }
    std::unique_ptr<Port> open(const std::vector<Rank>&, Lane) override { return std::make_unique<NoPort>(); }
    void leave() override {
        if (std::exchange(left_, true)) return;
        const std::vector<Rank> here = control_->leave(limit_);
        if (const auto why = control_->failure()) throw RunFailed(fmt::format("{}; rank {} was at its end", *why, rank()));
        if (here.empty()) return;
        const auto answers = control_->ask(0, here);  // any key: whether they answer is what counts
        std::vector<std::string> texts;
        for (size_t i = 0; i < here.size(); ++i) texts.push_back(fmt::format("rank {}{}", here[i], answers[i] ? "" : " (not responding)"));
        fail("rank {} waited {:.3g} s for all ranks to end; not arrived: {}", rank(), static_cast<double>(limit_.count()) * 1e-3,
             fmt::join(texts, ", "));
    }
    void fail_all(const std::string& why) override { control_->fail_all(why); }
    std::optional<std::string> failure() const override { return control_->failure(); }

  private:
    void throw_if_failed() const {
        if (const auto why = control_->failure()) throw RunFailed(*why);
    }

    SocketLanes lanes_;
    std::unique_ptr<SocketControl> control_;
    std::chrono::milliseconds limit_;
    bool left_ = false;
};

}  // namespace

std::unique_ptr<Transport> make_socket_transport(const RendezvousOptions& options) {
    return std::make_unique<SocketTransport>(options, meet(options));
}

}  // namespace convoy
