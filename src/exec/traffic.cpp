#include "exec/traffic.h"

#include <cstring>

#include "base/error.h"

namespace convoy {

namespace {

Lane lane_of(Queue queue) { return queue == Queue::Gradient ? Lane::Gradient : Lane::Activation; }

// A short wait without giving up the processor, for what is nearly done.
template <class Done>
bool spin(const Done& done) {
    for (int i = 0; i < 200; ++i) {
        if (done()) return true;
        if (i >= 20) std::this_thread::yield();
    }
    return false;
}

// Copies what does not lie in its place already; gaps become zero.
void gather(const std::vector<Bytes>& from, const std::vector<Bytes>& to) {
    for (size_t i = 0; i < from.size(); ++i) {
        if (from[i].data() != to[i].data()) std::memcpy(to[i].data(), from[i].data(), to[i].size());
        if (i + 1 == to.size()) return;
        std::byte* const end = to[i].data() + to[i].size();
        std::memset(end, 0, static_cast<size_t>(to[i + 1].data() - end));
    }
}

}  // namespace

TrafficQueue::~TrafficQueue() {
    if (!thread_.joinable()) return;
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
    }
    posted_changed_.notify_all();
    thread_.join();
}

void TrafficQueue::start() {
    if (!work_.empty()) thread_ = std::thread([this] { loop(); });
}

void TrafficQueue::loop() {
    std::unique_lock lock(mutex_);
    while (true) {
        posted_changed_.wait(lock, [&] { return stop_ || done_ < posted_; });
        if (stop_) return;
        const size_t next = done_;
        lock.unlock();
        std::exception_ptr failure;
        try {
            if (!failure_) work_[next]();
        } catch (...) {
            failure = std::current_exception();
        }
        lock.lock();
        if (failure) failure_ = failure;
        ++done_;
        done_changed_.notify_all();
    }
}

void TrafficQueue::post() {
    {
        const std::lock_guard lock(mutex_);
        ++posted_;
    }
    posted_changed_.notify_one();
}

void TrafficQueue::wait(size_t count) {
    const auto over = [&] { return done_.load(std::memory_order_acquire) >= count; };
    std::unique_lock lock(mutex_, std::defer_lock);
    if (!spin(over)) {
        lock.lock();
        done_changed_.wait(lock, over);
    } else {
        lock.lock();
    }
    if (failure_) std::rethrow_exception(failure_);
}

void TrafficQueue::finish() {
    if (work_.empty()) return;
    wait(posted_);
    const std::lock_guard lock(mutex_);
    posted_ = done_ = 0;
}

std::function<void()> bind_traffic(const Instruction& instruction, Link& link, const std::vector<Bytes>& inputs,
                                   const std::vector<Bytes>& outputs) {
    std::byte *in = inputs[0].data(), *out = outputs[0].data();
    const Lane lane = lane_of(instruction.queue);
    Channel& channel = link.channel(lane);
    const DType dtype = instruction.dtype;
    const Channel::Label label = channel.label_of(instruction.layer);
    if (const auto* collective = std::get_if<Collective>(&instruction.action)) {
        Communicator& communicator = link.communicator(lane, collective->group);
        const std::vector<int64_t> counts = collective->counts;
        switch (collective->kind) {
            case Collective::Kind::AllReduce:
                return [=, &channel, &communicator] {
                    channel.set_label(label);
                    gather(inputs, outputs);
                    const std::byte* const end = outputs.back().data() + outputs.back().size();
                    communicator.all_reduce(out, (end - out) / size_of(dtype), dtype);
                };
            case Collective::Kind::ReduceScatter:
                return [=, &channel, &communicator] {
                    channel.set_label(label);
                    communicator.reduce_scatter(in, out, counts, dtype);
                };
            case Collective::Kind::AllGather:
                return [=, &channel, &communicator] {
                    channel.set_label(label);
                    communicator.all_gather(in, out, counts, dtype);
                };
        }
    }
    const auto& exchange = std::get<Exchange>(instruction.action);
    std::vector<Outgoing> sends;
    std::vector<Incoming> receives;
    for (const auto& [rank, elements] : exchange.sends) {
        const auto bytes = static_cast<size_t>(elements * size_of(dtype));
        sends.push_back({rank, 0, {in, bytes}});
        in += bytes;
    }
    for (const auto& [rank, elements] : exchange.receives) {
        const auto bytes = static_cast<size_t>(elements * size_of(dtype));
        receives.push_back({rank, 0, {out, bytes}});
        out += bytes;
    }
    return [=, &channel] {
        channel.set_label(label);
        channel.exchange(sends, receives);
    };
}

void open_groups(const Program& program, Link& link) {
    std::vector<Link::Group> groups;
    for (const Instruction& instruction : program.instructions)
        if (const auto* collective = std::get_if<Collective>(&instruction.action))
            groups.emplace_back(lane_of(instruction.queue), collective->group);
    link.open(groups);
}

}  // namespace convoy
