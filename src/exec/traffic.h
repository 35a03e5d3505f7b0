// Runs the traffic of a program beside its computation: one thread for each queue, each taking its instructions in program order as the
// computation reaches them.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "exec/link.h"
#include "kernels/backend.h"
#include "program/program.h"

namespace convoy {

// On which lane the traffic of a queue goes.
Lane lane_of(Queue queue);

class TrafficQueue {
  public:
    TrafficQueue() = default;
    ~TrafficQueue();
    TrafficQueue(const TrafficQueue&) = delete;
    TrafficQueue& operator=(const TrafficQueue&) = delete;

    // Adds the next instruction of the queue; a carried one may go on into the next step. All are added before the first step.
    void add(std::function<void()> work, bool carried = false) {
        work_.push_back(std::move(work));
        if (!carried) staying_ = work_.size();
    }
    size_t size() const { return work_.size(); }
    // Starts the thread, when there is anything to do.
    void start();

    // Lets the thread run the next instruction.
    void post();
    // Runs it on the caller's thread, when nothing is before it; false, and nothing happens, when something is.
    bool run_here();
    // Waits until so many of this step's have finished, or of the step before. Throws what an instruction threw.
    void wait(size_t count) { wait_for(round_ + count); }
    void wait_before(size_t count) { wait_for(round_ - work_.size() + count); }
    // Waits for everything posted; the next step begins at the first instruction again.
    void finish();
    // After a whole step: waits for what is not carried. The next step may begin.
    void carry();

  private:
    void loop();
    void wait_for(size_t count);

    std::vector<std::function<void()>> work_;
    size_t staying_ = 0;  // of these, up to the last that is not carried
    size_t round_ = 0;    // how many of all were those of earlier steps
    std::thread thread_;
    std::mutex mutex_;
    std::condition_variable posted_changed_, done_changed_;
    std::atomic<size_t> posted_{0}, done_{0};
    bool stop_ = false;
    std::exception_ptr failure_;
};

using Bytes = std::span<std::byte>;
// What one traffic instruction does, with the memory of its operands bound. Several outputs lie in one piece of memory, in order, perhaps with gaps.
std::function<void()> bind_traffic(const Instruction& instruction, Link& link, const std::vector<Bytes>& inputs,
                                   const std::vector<Bytes>& outputs);
// The same for memory of a backend that the host cannot reach: it travels through host memory. What is sent must have been computed.
std::function<void()> bind_staged_traffic(const Instruction& instruction, Link& link, Backend& backend, const std::vector<Bytes>& inputs,
                                          const std::vector<Bytes>& outputs);

// The same for memory of devices that reach each other by themselves.
std::unique_ptr<BoundTraffic> bind_device_traffic(const Instruction& instruction, DeviceTraffic& traffic, const std::vector<Bytes>& inputs,
                                                  const std::vector<Bytes>& outputs);

// Makes the communicators of a program's collectives: of the devices where they reach each other by themselves, else of the host.
void open_groups(const Program& program, Link& link, DeviceTraffic* devices);

}  // namespace convoy
