#include "data/batches.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/random.h"

namespace convoy {

BatchOrder::BatchOrder(int64_t samples, int64_t batch, uint64_t seed, bool shuffle)
    : samples_(samples), batch_(std::min(batch, samples)), seed_(seed), shuffle_(shuffle) {
    require(samples >= 1, "expected at least one sample, found {}", samples);
    require(batch >= 1, "expected a batch size of at least 1, found {}", batch);
}

std::span<const int64_t> BatchOrder::indices(BatchPosition position) {
    CONVOY_CHECK(position.epoch >= 0 && position.epoch <= UINT32_MAX && position.batch >= 0 && position.batch < batches(),
                 "batch {} of {}, epoch {}", position.batch, batches(), position.epoch);
    if (order_.empty() && !shuffle_) {
        order_.resize(static_cast<size_t>(samples_));
        std::iota(order_.begin(), order_.end(), int64_t{0});
    }
    if (shuffle_ && epoch_ != position.epoch)
        order_ = permutation({seed_, static_cast<uint32_t>(position.epoch), stream_of("shuffle")}, samples_);
    epoch_ = position.epoch;
    const int64_t first = position.batch * batch_;
    return std::span<const int64_t>(order_).subspan(static_cast<size_t>(first), static_cast<size_t>(std::min(batch_, samples_ - first)));
}

BatchPosition BatchOrder::next(BatchPosition position) const {
    return position.batch + 1 < batches() ? BatchPosition{position.epoch, position.batch + 1} : BatchPosition{position.epoch + 1, 0};
}

}  // namespace convoy
