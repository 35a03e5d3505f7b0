#include "data/prefetch.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"

namespace convoy {

Prefetcher::Prefetcher(const Dataset& dataset, const BatchOrder& order, const PrefetchOptions& options)
    : dataset_(dataset), order_(order), position_(options.start), end_epoch_(options.end_epoch) {
    const DatasetInfo& info = dataset.info();
    require(order.samples() == dataset.size(), "dataset \"{}\" has {} samples, but the order of its batches is for {}", info.name,
            dataset.size(), order.samples());
    require(position_.epoch >= 0 && position_.batch >= 0 && position_.batch < order.batches(),
            "dataset \"{}\": cannot start at epoch {}, batch {}; an epoch has {} batches of {}", info.name, position_.epoch,
            position_.batch, order.batches(), order.batch_size());
    require(options.depth >= 2, "prefetching needs at least 2 batches, found {}", options.depth);
    for (int i = 0; i < options.depth; ++i)
        ring_.push_back({{}, 0, make_input(info, order.batch_size(), options.type), make_target(info, order.batch_size(), options.type)});
    worker_ = std::thread([this] { work(); });
}

Prefetcher::~Prefetcher() {
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
    }
    freed_.notify_one();
    worker_.join();
}

void Prefetcher::work() {
    const auto slots = static_cast<int64_t>(ring_.size());
    std::unique_lock lock(mutex_);
    try {
        while (position_.epoch < end_epoch_) {
            // Batch taken_ - 1 is in use until the consumer has the next one.
            freed_.wait(lock, [&] { return stop_ || produced_ < std::max<int64_t>(taken_ - 1, 0) + slots; });
            if (stop_) return;
            Batch& batch = ring_[static_cast<size_t>(produced_ % slots)];
            lock.unlock();
            const auto indices = order_.indices(position_);
            dataset_.read(indices, batch.input, batch.target);
            batch.position = position_;
            batch.count = static_cast<int64_t>(indices.size());
            position_ = order_.next(position_);
            lock.lock();
            ++produced_;
            filled_.notify_one();
        }
    } catch (...) {
        if (!lock.owns_lock()) lock.lock();
        error_ = std::current_exception();
    }
    finished_ = true;
    filled_.notify_one();
}

const Batch* Prefetcher::next() {
    std::unique_lock lock(mutex_);
    const auto ready = [&] { return taken_ < produced_ || finished_; };
    if (!ready()) {
        const auto begin = std::chrono::steady_clock::now();
        filled_.wait(lock, ready);
        waited_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }
    if (taken_ == produced_) {
        if (error_) std::rethrow_exception(error_);
        return nullptr;
    }
    const Batch* batch = &ring_[static_cast<size_t>(taken_ % static_cast<int64_t>(ring_.size()))];
    ++taken_;
    lock.unlock();
    freed_.notify_one();
    return batch;
}

}  // namespace convoy
