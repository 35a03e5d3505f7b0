// The order in which an epoch visits the samples, cut into batches. It depends only on the seed and the epoch, so training can go on from
// any point, and every rank knows the same order without being told.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace convoy {

// A batch of a training run. Ordered in time.
struct BatchPosition {
    int64_t epoch = 0, batch = 0;
    auto operator<=>(const BatchPosition&) const = default;
};

class BatchOrder {
  public:
    // `batch` samples each, the last batch with what is left. Error unless both counts are positive.
    BatchOrder(int64_t samples, int64_t batch, uint64_t seed, bool shuffle);

    int64_t samples() const { return samples_; }
    // Samples of every batch but the last; at most all there are.
    int64_t batch_size() const { return batch_; }
    // Batches of an epoch, a smaller last one included.
    int64_t batches() const { return (samples_ + batch_ - 1) / batch_; }

    // The samples of a batch; valid until another epoch is asked for. The order of one epoch is kept, so going through it batch by batch
    // computes and allocates nothing. Requires epoch >= 0 and batch in 0..batches-1.
    std::span<const int64_t> indices(BatchPosition position);

    // The position after this one: the next batch, or the first of the next epoch.
    BatchPosition next(BatchPosition position) const;

  private:
    int64_t samples_, batch_;
    uint64_t seed_;
    bool shuffle_;
    int64_t epoch_ = -1;  // whose order is kept
    std::vector<int64_t> order_;
};

}  // namespace convoy
