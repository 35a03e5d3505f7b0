// Batches read ahead of their use: worker threads fill a small ring of batches that are allocated once. The samples of a batch are shared out among the
// workers, so that even one batch is read as fast as all of them can.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <limits>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "data/batches.h"
#include "data/dataset.h"

namespace convoy {

// Which part of a batch somebody reads: some of its samples, and of each a box. Ranks that share a batch have different ones.
struct TensorPart {
    std::vector<int64_t> rows;  // rising
    Box box;                    // of a sample, without N
    bool operator==(const TensorPart&) const = default;
};
struct BatchPart {
    TensorPart input, target;
    bool operator==(const BatchPart&) const = default;
};
// All of a batch of `count` samples.
BatchPart whole_batch(const DatasetInfo& info, int64_t count);

struct Batch {
    BatchPosition position;
    int64_t count = 0;     // samples in it, on all ranks together
    Tensor input, target;  // [rows, box...] of the part; types as made by make_input and make_target
    int64_t bytes = 0;     // taken from where the data are kept
};

struct PrefetchOptions {
    DType type = DType::f32;                                  // of the input: f32, f64, or bf16, to which the workers round
    int depth = 3;                                            // batches in the ring, the one in use included; at least 2
    int workers = 1;                                          // threads
    BatchPosition start;                                      // the first batch, so that a run can go on where another stopped
    int64_t end_epoch = std::numeric_limits<int64_t>::max();  // reading ends before this epoch
    std::optional<BatchPart> full, last;                      // what to read of a batch, and of the smaller last one; nothing: all of it
};

class Prefetcher {
  public:
    // Starts reading. The dataset must outlive the prefetcher. Error when the order's samples are not the dataset's, or the start is no
    // batch of it.
    Prefetcher(const Dataset& dataset, const BatchOrder& order, const PrefetchOptions& options);
    // Stops after the samples that are being read, if any.
    ~Prefetcher();
    Prefetcher(const Prefetcher&) = delete;
    Prefetcher& operator=(const Prefetcher&) = delete;

    // The next batch, waiting for it if need be; null after the last one. It is the caller's until the next call of `next`. What the
    // reading threw is thrown here, in its place in the order, and at every later call. For one consumer.
    const Batch* next();

    // The memory of all inputs and targets, which stays where it is as long as the prefetcher lives.
    std::vector<std::span<std::byte>> memory();

    // How long `next` has waited, all calls together.
    double waited_seconds() const { return waited_seconds_; }

  private:
    // A sample of a batch: which, and where it goes; -1: not there.
    struct Row {
        int64_t row, input, target;
    };
    struct Layout {
        BatchPart part;
        std::vector<Row> rows;
    };
    struct Slot {
        Batch full, last;
        Batch* batch = nullptr;  // which of the two
        const Layout* layout = nullptr;
        std::vector<int64_t> samples;  // of the batch
        int64_t given = 0, done = 0;   // rows handed to workers, rows read
        int64_t failed = -1;           // the first row whose reading failed
        std::exception_ptr error;

        int64_t rows() const { return static_cast<int64_t>(layout->rows.size()); }
    };

    Layout layout_of(const std::optional<BatchPart>& part, int64_t count) const;
    void work();
    Slot& slot(int64_t batch) { return ring_[static_cast<size_t>(batch) % ring_.size()]; }
    bool may_begin() const;
    void begin_batch();
    // What a worker has for itself.
    struct Desk {
        std::unique_ptr<Scratch> scratch;
        std::vector<float> input;  // of a sample, before it is rounded
    };
    void read_rows(Slot& slot, int64_t first, int64_t end, Desk& desk);

    const Dataset& dataset_;
    BatchOrder order_;
    BatchPosition position_;  // of the next batch to begin
    const int64_t end_epoch_;
    const DType type_, read_type_;  // of the batches, and in which samples are read
    const int workers_count_;
    Layout full_, last_;
    double waited_seconds_ = 0;

    std::mutex mutex_;
    std::condition_variable filled_, freed_;
    // Guarded by the mutex, as is what slots say about their rows. Batch i of the run lies in slot i % ring size; those before begun_ are being read or are
    // ready, and the one in use is taken_ - 1.
    int64_t begun_ = 0, taken_ = 0;
    bool stop_ = false, broken_ = false;
    std::exception_ptr error_;

    std::vector<Slot> ring_;
    std::vector<std::thread> workers_;
};

}  // namespace convoy
