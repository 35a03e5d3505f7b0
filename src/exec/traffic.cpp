#include "exec/traffic.h"

#include <cstring>

#include "base/error.h"

namespace convoy {

namespace {

// A short wait without giving up the processor, for what is nearly done.
template <class Done>
bool spin(const Done& done) {
    for (int i = 0; i < 200; ++i) {
        if (done()) return true;
        if (i >= 20) std::this_thread::yield();
    }
    return false;
}

// What brings several inputs together: calls fill(dst, src, bytes) for what does not lie in its place already, and without a source for gaps, which become
// zero.
template <class Fill>
void each_fill(const std::vector<Bytes>& from, const std::vector<Bytes>& to, const Fill& fill) {
    for (size_t i = 0; i < from.size(); ++i) {
        if (from[i].data() != to[i].data() && !to[i].empty()) fill(to[i].data(), from[i].data(), to[i].size());
        if (i + 1 == to.size()) return;
        std::byte* const end = to[i].data() + to[i].size();
        if (end != to[i + 1].data()) fill(end, nullptr, static_cast<size_t>(to[i + 1].data() - end));
    }
}

void gather(const std::vector<Bytes>& from, const std::vector<Bytes>& to) {
    each_fill(from, to, [](std::byte* dst, const std::byte* src, size_t bytes) {
        if (src)
            std::memcpy(dst, src, bytes);
        else
            std::memset(dst, 0, bytes);
    });
}

Traffic kind_of(const Collective& collective) {
    switch (collective.kind) {
        case Collective::Kind::AllReduce: return Traffic::AllReduce;
        case Collective::Kind::ReduceScatter: return Traffic::ReduceScatter;
        case Collective::Kind::AllGather: return Traffic::AllGather;
    }
    CONVOY_CHECK(false, "an unknown collective");
}

// The messages of an exchange: one after the other from `in`, and to `out`.
void messages_of(const Instruction& instruction, const std::byte* in, std::byte* out, std::vector<Outgoing>& sends,
                 std::vector<Incoming>& receives) {
    const auto& exchange = std::get<Exchange>(instruction.action);
    for (const auto& [rank, elements] : exchange.sends) {
        const auto bytes = static_cast<size_t>(elements * size_of(instruction.dtype));
        sends.push_back({rank, 0, {in, bytes}});
        in += bytes;
    }
    for (const auto& [rank, elements] : exchange.receives) {
        const auto bytes = static_cast<size_t>(elements * size_of(instruction.dtype));
        receives.push_back({rank, 0, {out, bytes}});
        out += bytes;
    }
}

}  // namespace

Lane lane_of(Queue queue) { return queue == Queue::Late ? Lane::Late : queue == Queue::Gradient ? Lane::Gradient : Lane::Activation; }

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
    run_beside_computation();
    std::unique_lock lock(mutex_);
    while (true) {
        posted_changed_.wait(lock, [&] { return stop_ || done_ < posted_; });
        if (stop_) return;
        const size_t next = done_ % work_.size();
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

bool TrafficQueue::run_here() {
    {
        const std::lock_guard lock(mutex_);
        if (done_ != posted_ || failure_) return false;
    }
    work_[posted_ % work_.size()]();
    const std::lock_guard lock(mutex_);
    ++posted_;
    ++done_;
    return true;
}

void TrafficQueue::wait_for(size_t count) {
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
    wait_for(posted_);
    const std::lock_guard lock(mutex_);
    posted_ = done_ = round_ = 0;
}

void TrafficQueue::carry() {
    if (work_.empty()) return;
    wait(staying_);
    round_ += work_.size();
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
    std::vector<Outgoing> sends;
    std::vector<Incoming> receives;
    messages_of(instruction, in, out, sends, receives);
    return [=, &channel] {
        channel.set_label(label);
        channel.exchange(sends, receives);
    };
}

std::function<void()> bind_staged_traffic(const Instruction& instruction, Link& link, Backend& backend, const std::vector<Bytes>& inputs,
                                          const std::vector<Bytes>& outputs) {
    // Outputs lie in host memory as they do in the backend's, in one piece; so do inputs that lie among them.
    struct Staged {
        Operand operand;  // as mere bytes
        Tensor host;
        std::byte* place;  // where traffic has it
    };
    struct Stage {
        Tensor piece;
        std::vector<Tensor> apart;
        std::vector<Staged> inputs, outputs;
    };
    const auto stage = std::make_shared<Stage>();
    const std::byte *const begin = outputs.front().data(), *const end = outputs.back().data() + outputs.back().size();
    stage->piece = Tensor({end - begin}, DType::u8);
    stage->apart.reserve(inputs.size());
    std::vector<Bytes> in, out;
    const auto add = [&](const Bytes& bytes, std::vector<Staged>& list, std::vector<Bytes>& places) {
        const auto size = static_cast<int64_t>(bytes.size());
        const bool inside = bytes.data() >= begin && bytes.data() + size <= end;
        if (!inside) stage->apart.emplace_back(Shape{size}, DType::u8);
        std::byte* const place = inside ? stage->piece.data() + (bytes.data() - begin) : stage->apart.back().data();
        list.push_back({{bytes.data(), TensorDesc::whole({size}, DType::u8), Layout::plain()}, Tensor({size}, DType::u8), place});
        places.emplace_back(place, bytes.size());
    };
    for (const Bytes& bytes : inputs) add(bytes, stage->inputs, in);
    for (const Bytes& bytes : outputs) add(bytes, stage->outputs, out);
    auto work = bind_traffic(instruction, link, in, out);
    return [stage, work, &backend] {
        for (Staged& s : stage->inputs) {
            backend.download(s.operand, s.host);
            std::copy_n(s.host.data(), s.host.bytes(), s.place);
        }
        work();
        for (Staged& s : stage->outputs) {
            std::copy_n(s.place, s.host.bytes(), s.host.data());
            backend.upload(s.host, s.operand);
        }
    };
}

std::unique_ptr<BoundTraffic> bind_device_traffic(const Instruction& instruction, DeviceTraffic& traffic, const std::vector<Bytes>& inputs,
                                                  const std::vector<Bytes>& outputs) {
    DeviceCall bound{.lane = lane_of(instruction.queue), .layer = instruction.layer};
    CollectiveCall& call = bound.call;
    call = {.dtype = instruction.dtype, .in = inputs[0].data(), .out = outputs[0].data()};
    if (const auto* collective = std::get_if<Collective>(&instruction.action)) {
        bound.group = collective->group;
        bound.counts = collective->counts;
        call.kind = kind_of(*collective);
        if (call.kind != Traffic::AllReduce) return traffic.bind(bound);
        bound.counts.clear();
        const std::byte* const end = outputs.back().data() + outputs.back().size();
        call.in = call.out;
        call.count = (end - call.out) / size_of(call.dtype);
        each_fill(inputs, outputs, [&](std::byte* dst, const std::byte* src, size_t bytes) { bound.before.push_back({dst, src, bytes}); });
        return traffic.bind(bound);
    }
    call.kind = Traffic::Transfer;
    messages_of(instruction, inputs[0].data(), outputs[0].data(), bound.sends, bound.receives);
    return traffic.bind(bound);
}

void open_groups(const Program& program, Link& link, DeviceTraffic* devices) {
    std::vector<Link::Group> groups;
    std::vector<Lane> transfers;
    for (const Instruction& instruction : program.instructions) {
        const Lane lane = lane_of(instruction.queue);
        if (const auto* collective = std::get_if<Collective>(&instruction.action)) groups.emplace_back(lane, collective->group);
        if (std::holds_alternative<Exchange>(instruction.action)) transfers.push_back(lane);
    }
    if (devices)
        devices->open(groups, transfers);
    else
        link.open(groups);
}

}  // namespace convoy
