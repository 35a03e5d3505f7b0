// One communicator of NCCL. Its calls never block inside the library: what takes time there (connecting, at first) is asked after until it is done or too
// late.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "comm/device_traffic.h"
#include "comm/nccl/nccl_calls.h"

namespace convoy {

class NcclGroup {
  public:
    struct Limits {
        std::chrono::milliseconds connect, call;
        std::function<void()> check;  // asked while NCCL takes its time: throws when the run has ended meanwhile
    };
    // All ranks of the group make it at the same time, with the id of its first rank. Error when NCCL refuses or it takes too long.
    NcclGroup(const ncclUniqueId& id, int size, int place, Limits limits);
    ~NcclGroup();
    NcclGroup(const NcclGroup&) = delete;
    NcclGroup& operator=(const NcclGroup&) = delete;

    // Puts the call into the stream. Between two ranks places are ranks: the group of a Transfer is everyone.
    void enqueue(const DeviceCall& call, cudaStream_t stream);
    // What NCCL has found wrong by itself; empty when nothing.
    std::string trouble() const;
    // Ends what runs, at once; nothing may be enqueued afterwards. By any thread.
    void abort();

  private:
    void wait_until_ready(const char* call, std::chrono::milliseconds limit) const;
    void enqueue_parts(const DeviceCall& call, cudaStream_t stream) const;

    ncclComm_t comm_ = nullptr;
    int size_ = 1, place_ = 0;
    Limits limits_;
    // Held by calls of NCCL's that another thread's abort would pull the communicator from under; whoever has it when both are due does the abort.
    mutable std::mutex calls_;
    std::atomic<bool> aborted_ = false;
    std::thread aborting_;
};

}  // namespace convoy
