// Watches traffic that runs on a device, where no thread of ours waits for it. The device counts, in memory that the host can read, what it has begun and
// finished on each lane; the watch knows in which order that comes. What takes too long ends the run with an Error that says where and who is
// missing, as it does for traffic of the host.
#pragma once

#include <array>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "comm/meeting.h"

namespace convoy {

// What a device has begun and finished on a lane since the start. It writes them as plain words.
struct DeviceMarks {
    std::atomic<uint64_t> begun{0}, done{0};
};
static_assert(std::atomic<uint64_t>::is_always_lock_free && sizeof(std::atomic<uint64_t>) == sizeof(uint64_t));

// One piece of traffic, for messages.
struct WatchedTraffic {
    std::string what;  // "all_reduce of layer "conv1" on the gradient queue (ranks 0, 1)"
    std::vector<Meeting> meetings;
};

class DeviceWatch {
  public:
    struct Options {
        std::chrono::milliseconds limit;  // for each piece, from its beginning on the device
        // What the library has to say of its own; empty: all is well. Called by the watch's thread, now and then.
        std::function<std::string()> trouble;
        // Called once by the watch's thread when traffic is given up: ends what runs on the device.
        std::function<void()> give_up;
    };
    // The marks and the transport must outlive the watch.
    DeviceWatch(Transport& transport, std::array<DeviceMarks*, kLanes> marks, Options options);
    ~DeviceWatch();
    DeviceWatch(const DeviceWatch&) = delete;
    DeviceWatch& operator=(const DeviceWatch&) = delete;

    // This is the next thing that the device will run on the lane. Comes before it is started.
    void expect(Lane lane, std::shared_ptr<const WatchedTraffic> traffic);
    // Error, or RunFailed when another rank ended the run, once traffic was given up.
    void check() const;

  private:
    struct Queue {
        std::deque<std::shared_ptr<const WatchedTraffic>> waiting;  // not finished; the first may have begun
        uint64_t finished = 0, begun = 0;                           // as of the last look
        Clock::time_point since;                                    // when the first was seen to have begun
    };
    void loop();
    bool idle() const;
    // Takes note of what the device has done. The text of what is late, or nothing.
    std::string look(Lane lane, Clock::time_point now);
    // The ranks that have not come to it.
    std::string missing_here(Lane lane, const WatchedTraffic& late) const;
    // ", in all_reduce of ...": what the device has begun and not finished.
    std::string at_work() const;
    void fail_with(std::exception_ptr failure);

    Transport& transport_;
    std::array<DeviceMarks*, kLanes> marks_;
    Options options_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::array<Queue, kLanes> queues_;
    std::exception_ptr failure_;
    bool stop_ = false;
    std::thread thread_;
};

}  // namespace convoy
