#include "comm/device_watch.h"

#include <algorithm>
#include <exception>

namespace convoy {

namespace {

constexpr auto kPeriod = std::chrono::milliseconds(1);
constexpr int kLooksBetweenQuestions = 50;  // the library is asked after so many looks

}  // namespace

DeviceWatch::DeviceWatch(Transport& transport, std::array<DeviceMarks*, kLanes> marks, Options options)
    : transport_(transport), marks_(marks), options_(std::move(options)), thread_([this] { loop(); }) {}

DeviceWatch::~DeviceWatch() {
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

void DeviceWatch::expect(Lane lane, std::shared_ptr<const WatchedTraffic> traffic) {
    {
        const std::lock_guard lock(mutex_);
        queues_[static_cast<size_t>(lane)].waiting.push_back(std::move(traffic));
    }
    changed_.notify_one();
}

void DeviceWatch::check() const {
    const std::lock_guard lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
}

bool DeviceWatch::idle() const {
    return std::all_of(queues_.begin(), queues_.end(), [](const Queue& q) { return q.waiting.empty(); });
}

std::string DeviceWatch::look(Lane lane, Clock::time_point now) {
    Queue& queue = queues_[static_cast<size_t>(lane)];
    const DeviceMarks& marks = *marks_[static_cast<size_t>(lane)];
    const uint64_t done = marks.done.load(), begun = std::max(marks.begun.load(), done);  // in this order: what is done has begun
    for (; queue.begun < begun && queue.begun - queue.finished < queue.waiting.size(); ++queue.begun)
        for (const Meeting& meeting : queue.waiting[queue.begun - queue.finished]->meetings)
            meeting.begun->fetch_add(1, std::memory_order_relaxed);
    if (done > queue.finished) queue.since = {};
    for (; queue.finished < done && !queue.waiting.empty(); ++queue.finished) queue.waiting.pop_front();
    if (begun == done) return "";
    if (queue.since == Clock::time_point{}) queue.since = now;
    if (now - queue.since < options_.limit || queue.waiting.empty()) return "";
    const auto late = queue.waiting.front();
    const std::string missing = missing_here(lane, *late);
    return fmt::format("rank {} waited {:.3g} s in {}; {}", transport_.rank(), static_cast<double>(options_.limit.count()) * 1e-3,
                       late->what, missing.empty() ? "all ranks had arrived" : "not arrived: " + missing);
}

// What asking the others gives, which may fail as well.
std::string DeviceWatch::missing_here(Lane lane, const WatchedTraffic& late) const {
    try {
        return missing_at(transport_, lane, late.meetings);
    } catch (const std::exception& e) {
        return fmt::format("unknown ({})", e.what());
    }
}

std::string DeviceWatch::at_work() const {
    std::string text;
    for (const Queue& queue : queues_)
        if (queue.begun > queue.finished && !queue.waiting.empty())
            text += fmt::format("{}{}", text.empty() ? ", in " : " and in ", queue.waiting.front()->what);
    return text;
}

void DeviceWatch::fail_with(std::exception_ptr failure) {
    {
        const std::lock_guard lock(mutex_);
        failure_ = std::move(failure);
    }
    options_.give_up();
}

void DeviceWatch::loop() {
    std::unique_lock lock(mutex_);
    for (int looks = 0;; ++looks) {
        changed_.wait(lock, [this] { return stop_ || !idle(); });
        if (stop_) return;
        changed_.wait_for(lock, kPeriod, [this] { return stop_; });
        if (stop_) return;
        std::string late;
        for (int lane = 0; lane < kLanes && late.empty(); ++lane) late = look(static_cast<Lane>(lane), Clock::now());
        const std::string where = at_work();
        lock.unlock();
        if (const auto ended = transport_.failure())
            return fail_with(std::make_exception_ptr(
                RunFailed(where.empty() ? *ended : fmt::format("{}; rank {} was{}", *ended, transport_.rank(), where.substr(1)))));
        const std::string trouble = looks % kLooksBetweenQuestions == 0 ? options_.trouble() : "";
        if (late.empty() && !trouble.empty()) late = fmt::format("rank {}{}: {}", transport_.rank(), where, trouble);
        if (!late.empty()) return fail_with(std::make_exception_ptr(Error(late)));
        lock.lock();
    }
}

}  // namespace convoy
