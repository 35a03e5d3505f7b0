// The batches of a run, in order: read ahead by workers, from memory that the backend's device can copy from by itself. Where a step leaves the host time, the next batch is
// sent on while it runs.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "data/prefetch.h"
#include "kernels/backend.h"

namespace convoy {

class BatchReader {
  public:
    // Dataset, order and backend must outlive it.
    BatchReader(const Dataset& dataset, const BatchOrder& order, const PrefetchOptions& reading, Backend& backend);

    // The next batch, which is the one at this position. Its memory may be another batch's after the next call of either function.
    const Batch& next(const BatchPosition& position);
    // Fetches the batch after this one early, and sends it. What is wrong with it is said when its turn comes.
    void send_ahead(const std::function<void(const Batch&)>& send);

    double waited_seconds() const { return batches_.waited_seconds(); }

  private:
    Prefetcher batches_;
    std::vector<std::unique_ptr<PageLock>> locks_;
    const Batch* ahead_ = nullptr;
    std::exception_ptr ahead_error_;
};

}  // namespace convoy
