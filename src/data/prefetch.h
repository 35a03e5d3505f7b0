// Batches read ahead of their use: one worker thread fills a small ring of batches that are allocated once.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

#include "data/batches.h"
#include "data/dataset.h"

namespace convoy {

struct Batch {
    BatchPosition position;
    int64_t count = 0;     // samples in it: the first rows of the tensors, which have room for a full batch
    Tensor input, target;  // as made by make_input and make_target
};

struct PrefetchOptions {
    DType type = DType::f32;                                  // of the input: f32 or f64
    int depth = 3;                                            // batches in the ring, the one in use included; at least 2
    BatchPosition start;                                      // the first batch, so that a run can go on where another stopped
    int64_t end_epoch = std::numeric_limits<int64_t>::max();  // reading ends before this epoch
};

class Prefetcher {
  public:
    // Starts reading. The dataset must outlive the prefetcher. Error when the order's samples are not the dataset's, or the start is no
    // batch of it.
    Prefetcher(const Dataset& dataset, const BatchOrder& order, const PrefetchOptions& options);
    // Stops after the batch that is being read, if any.
    ~Prefetcher();
    Prefetcher(const Prefetcher&) = delete;
    Prefetcher& operator=(const Prefetcher&) = delete;

    // The next batch, waiting for it if need be; null after the last one. It is the caller's until the next call of `next`. What the
    // reading threw is thrown here, in its place in the order, and at every later call. For one consumer.
    const Batch* next();

    // How long `next` has waited, all calls together.
    double waited_seconds() const { return waited_seconds_; }

  private:
    void work();

    const Dataset& dataset_;
    BatchOrder order_;  // the worker's
    BatchPosition position_;
    const int64_t end_epoch_;
    double waited_seconds_ = 0;

    std::mutex mutex_;
    std::condition_variable filled_, freed_;
    // Guarded by the mutex. Batch i of the run lies in slot i % ring size; [taken_, produced_) are ready, and so is the one in use,
    // taken_ - 1.
    int64_t produced_ = 0, taken_ = 0;
    bool stop_ = false, finished_ = false;
    std::exception_ptr error_;

    std::vector<Batch> ring_;
    std::thread worker_;
};

}  // namespace convoy
