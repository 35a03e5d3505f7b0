#include "comm/thread_world.h"

#include <array>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <thread>

#include "base/error.h"
#include "comm/thread/mailbox.h"
#include "comm/thread/shared_group.h"
#include "comm/thread/shared_work.h"

namespace convoy {

namespace {

std::vector<int> nodes_of(int size, int ranks_per_node) {
    std::vector<int> nodes;
    for (int rank = 0; rank < size; ++rank) nodes.push_back(ranks_per_node > 0 ? rank / ranks_per_node : 0);
    return nodes;
}

}  // namespace

// What the ranks share.
struct ThreadWorld::Shared {
    explicit Shared(int size) : boxes(static_cast<size_t>(size * kLanes)), ranks(size) {
        for (int i = 0; i < size * kLanes; ++i) events.emplace_back(Event::spin_for(size));
    }

    static size_t index(Rank rank, Lane lane) { return static_cast<size_t>(rank * kLanes) + static_cast<size_t>(lane); }
    std::optional<std::string> failure() {
        if (!failed.load()) return std::nullopt;
        const std::lock_guard lock(mutex);
        return why;
    }
    void throw_if_failed() {
        if (const auto text = failure()) throw RunFailed(*text);
    }
    std::vector<std::atomic<int64_t>>& arrivals(GroupKey key) {
        const std::lock_guard lock(mutex);
        auto& counters = arrivals_by_key[key];
        if (!counters) counters = std::make_unique<std::vector<std::atomic<int64_t>>>(static_cast<size_t>(ranks));
        return *counters;
    }
    SharedGroup& group(GroupKey key, int size) {
        const std::lock_guard lock(mutex);
        auto& found = groups[key];
        if (!found) found = std::make_unique<SharedGroup>(size, Event::spin_for(ranks));
        return *found;
    }

    std::vector<Mailbox> boxes;  // by receiver and lane
    std::deque<Event> events;    // by rank and lane
    int ranks;
    std::atomic<bool> failed{false};
    std::mutex mutex;  // of all below
    std::string why;
    std::map<GroupKey, std::unique_ptr<std::vector<std::atomic<int64_t>>>> arrivals_by_key;
    std::map<GroupKey, std::unique_ptr<SharedGroup>> groups;
};

namespace {

class ThreadPort : public Port {
  public:
    ThreadPort(ThreadWorld::Shared& shared, SharedGroup& group, int place) : shared_(shared), group_(group), place_(place) {}

    bool offers(const CollectiveCall&) const override { return true; }

    bool run(const CollectiveCall& call, Deadline deadline) override {
        const auto outcome = group_.meet(place_, call, deadline, shared_.failed);
        if (outcome == SharedGroup::Outcome::Failed) shared_.throw_if_failed();
        if (outcome != SharedGroup::Outcome::Met) return false;
        if (call.kind == Traffic::Barrier) return true;
        share_work(group_, place_);
        group_.leave(place_);
        return true;
    }

  private:
    ThreadWorld::Shared& shared_;
    SharedGroup& group_;
    int place_;
};

class ThreadTransport : public Transport {
  public:
    ThreadTransport(std::shared_ptr<ThreadWorld::Shared> shared, Rank rank, std::vector<int> nodes)
        : Transport("thread", rank, std::move(nodes)), shared_(std::move(shared)) {}

    Request send(const Address& to, std::span<const std::byte> data) override {
        Message& message = fresh(to);
        message.send = true;
        message.from = rank();
        message.to = to.peer;
        message.data = const_cast<std::byte*>(data.data());
        message.bytes = data.size();
        return deliver(message);
    }

    Request receive(const Address& from, std::span<std::byte> data) override {
        Message& message = fresh(from);
        message.send = false;
        message.from = from.peer;
        message.to = rank();
        message.data = data.data();
        message.bytes = data.size();
        return deliver(message);
    }

    bool done(Request& request) override {
        if (!request.active) return true;
        if (!message_of(request).over()) {
            shared_->throw_if_failed();
            return false;
        }
        finish(request);
        return true;
    }

    bool wait(std::span<Request> requests, Deadline deadline) override {
        for (Request& request : requests) {
            if (!request.active) continue;
            Message& message = message_of(request);
            if (!message.owner->wait([&] { return message.over() || shared_->failed.load(); }, deadline)) return false;
            if (message.over()) {
                finish(request);
                continue;
            }
            withdraw(requests);
            shared_->throw_if_failed();
        }
        return true;
    }

    void withdraw(std::span<Request> requests) override {
        for (Request& request : requests) {
            if (!request.active) continue;
            Message& message = message_of(request);
            if (!box_of(message).remove(message))
                while (!message.over()) std::this_thread::yield();  // its other half is being copied
            release(request);
        }
    }

    std::atomic<int64_t>& arrivals(GroupKey key) override { return shared_->arrivals(key)[static_cast<size_t>(rank())]; }

    std::vector<std::optional<int64_t>> arrivals_of(GroupKey key, Lane, std::span<const Rank> ranks) override {
        auto& counters = shared_->arrivals(key);
        std::vector<std::optional<int64_t>> counts;
        for (const Rank r : ranks) counts.emplace_back(counters[static_cast<size_t>(r)].load());
        return counts;
    }

    std::unique_ptr<Port> open(const std::vector<Rank>& group, Lane lane) override {
        int place = 0;
        while (group[static_cast<size_t>(place)] != rank()) ++place;
        return std::make_unique<ThreadPort>(*shared_, shared_->group(group_key(group, lane), static_cast<int>(group.size())), place);
    }

    void fail_all(const std::string& why) override {
        {
            const std::lock_guard lock(shared_->mutex);
            if (shared_->why.empty()) shared_->why = fmt::format("rank {} ended the run: {}", rank(), why);
        }
        shared_->failed.store(true);
        for (Event& event : shared_->events) event.notify();
    }
    std::optional<std::string> failure() const override { return shared_->failure(); }

  private:
    // Messages are kept and used again; each lane has its own, because each lane has its own thread.
    struct Pool {
        std::vector<std::unique_ptr<Message>> all;
        std::vector<Message*> free;
    };

    Message& fresh(const Address& address) {
        shared_->throw_if_failed();
        Pool& pool = pools_[static_cast<size_t>(address.lane)];
        if (pool.free.empty()) {
            pool.all.push_back(std::make_unique<Message>());
            pool.free.push_back(pool.all.back().get());
        }
        Message& message = *pool.free.back();
        pool.free.pop_back();
        message.lane = address.lane;
        message.tag = address.tag;
        message.owner = &shared_->events[ThreadWorld::Shared::index(rank(), address.lane)];
        message.state.store(Message::State::Waiting);
        return message;
    }

    Mailbox& box_of(const Message& message) { return shared_->boxes[ThreadWorld::Shared::index(message.to, message.lane)]; }
    // NOLINTNEXTLINE(performance-no-int-to-ptr): what a handle means is the transport's own affair
    static Message& message_of(const Request& request) { return *reinterpret_cast<Message*>(request.handle); }

    Request deliver(Message& message) {
        Request request{reinterpret_cast<uint64_t>(&message), true};
        Message* const other = box_of(message).match_or_keep(message);
        if (other == nullptr) return request;
        const bool fits = message.bytes == other->bytes;
        const Message& source = message.send ? message : *other;
        if (fits && message.bytes > 0) std::memcpy((message.send ? *other : message).data, source.data, message.bytes);
        const auto state = fits ? Message::State::Done : Message::State::WrongSize;
        message.state.store(state);
        Event* const waiting = other->owner;
        other->state.store(state);  // from here on it may be gone
        waiting->notify();
        finish(request);
        return request;
    }

    void finish(Request& request) {
        Message& message = message_of(request);
        const bool fits = message.state.load() == Message::State::Done;
        const Rank from = message.from, to = message.to;
        const int tag = message.tag;
        release(request);
        require(fits, "a message from rank {} to rank {} with tag {} has not the size that is expected", from, to, tag);
    }

    void release(Request& request) {
        Message& message = message_of(request);
        pools_[static_cast<size_t>(message.lane)].free.push_back(&message);
        request = {};
    }

    std::shared_ptr<ThreadWorld::Shared> shared_;
    std::array<Pool, kLanes> pools_;
};

}  // namespace

ThreadWorld::ThreadWorld(int size, int ranks_per_node) {
    require(size >= 1, "a world of {} ranks; expected at least one", size);
    shared_ = std::make_shared<Shared>(size);
    for (Rank r = 0; r < size; ++r) transports_.push_back(std::make_unique<ThreadTransport>(shared_, r, nodes_of(size, ranks_per_node)));
}

ThreadWorld::~ThreadWorld() = default;

int ThreadWorld::size() const { return static_cast<int>(transports_.size()); }

Transport& ThreadWorld::rank(Rank rank) {
    CONVOY_CHECK(rank >= 0 && rank < size(), "rank {} of a world of {}", rank, size());
    return *transports_[static_cast<size_t>(rank)];
}

std::optional<std::string> ThreadWorld::failure() const { return shared_->failure(); }

void run_ranks(ThreadWorld& world, const std::function<void(Transport&)>& body) {
    std::vector<std::thread> threads;
    for (Rank r = 0; r < world.size(); ++r) {
        threads.emplace_back([&world, &body, r] {
            Transport& transport = world.rank(r);
            try {
                body(transport);
            } catch (const std::exception& e) {
                transport.fail_all(e.what());
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    if (const auto why = world.failure()) throw Error(*why);
}

}  // namespace convoy
