#include "train/batch_reader.h"

#include <utility>

#include "base/error.h"

namespace convoy {

BatchReader::BatchReader(const Dataset& dataset, const BatchOrder& order, const PrefetchOptions& reading, Backend& backend)
    : batches_(dataset, order, reading) {
    for (const std::span<std::byte> memory : batches_.memory()) locks_.push_back(backend.lock_pages(memory));
}

const Batch& BatchReader::next(const BatchPosition& position) {
    if (ahead_error_) std::rethrow_exception(ahead_error_);
    const Batch* batch = ahead_ ? std::exchange(ahead_, nullptr) : batches_.next();
    CONVOY_CHECK(batch && batch->position == position, "batch {} of epoch {} is another one", position.batch, position.epoch);
    return *batch;
}

void BatchReader::send_ahead(const std::function<void(const Batch&)>& send) {
    try {
        ahead_ = batches_.next();
        if (ahead_) send(*ahead_);
    } catch (...) {
        ahead_error_ = std::current_exception();
    }
}

}  // namespace convoy
