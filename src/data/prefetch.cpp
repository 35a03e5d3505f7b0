#include "data/prefetch.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "base/error.h"

namespace convoy {

BatchPart whole_batch(const DatasetInfo& info, int64_t count) {
    std::vector<int64_t> rows(static_cast<size_t>(count));
    std::iota(rows.begin(), rows.end(), int64_t{0});
    return {{rows, Box::whole(info.input)}, {rows, Box::whole(info.target_shape)}};
}

Prefetcher::Layout Prefetcher::layout_of(const std::optional<BatchPart>& part, int64_t count) const {
    const DatasetInfo& info = dataset_.info();
    Layout layout{part ? *part : whole_batch(info, count), {}};
    const auto place = [](const TensorPart& of, int64_t row) {
        const auto at = std::lower_bound(of.rows.begin(), of.rows.end(), row);
        return at != of.rows.end() && *at == row ? at - of.rows.begin() : int64_t{-1};
    };
    for (int64_t row = 0; row < count; ++row) {
        const Row r{row, place(layout.part.input, row), place(layout.part.target, row)};
        if (r.input >= 0 || r.target >= 0) layout.rows.push_back(r);
    }
    const auto inside = [&](const TensorPart& of, const Shape& shape) {
        return of.rows.empty() || (of.rows.back() < count && contains(Box::whole(shape), of.box));
    };
    CONVOY_CHECK(inside(layout.part.input, info.input) && inside(layout.part.target, info.target_shape),
                 "a part of \"{}\" that it does not have", info.name);
    return layout;
}

Prefetcher::Prefetcher(const Dataset& dataset, const BatchOrder& order, const PrefetchOptions& options)
    : dataset_(dataset),
      order_(order),
      position_(options.start),
      end_epoch_(options.end_epoch),
      type_(options.type),
      read_type_(options.type == DType::bf16 ? DType::f32 : options.type),
      workers_count_(options.workers) {
    const DatasetInfo& info = dataset.info();
    require(order.samples() == dataset.size(), "dataset \"{}\" has {} samples, but the order of its batches is for {}", info.name,
            dataset.size(), order.samples());
    require(position_.epoch >= 0 && position_.batch >= 0 && position_.batch < order.batches(),
            "dataset \"{}\": cannot start at epoch {}, batch {}; an epoch has {} batches of {}", info.name, position_.epoch,
            position_.batch, order.batches(), order.batch_size());
    require(options.depth >= 2, "prefetching needs at least 2 batches, found {}", options.depth);
    require(options.workers >= 1, "prefetching needs at least 1 worker, found {}", options.workers);
    const int64_t rest = order.samples() % order.batch_size();
    full_ = layout_of(options.full, order.batch_size());
    if (rest > 0) last_ = layout_of(options.last, rest);
    const auto batch_for = [&](const Layout& layout) {
        const auto tensor = [](const TensorPart& part, DType type) {
            return Tensor(join({static_cast<int64_t>(part.rows.size())}, part.box.shape), type);
        };
        return Batch{.input = tensor(layout.part.input, type_), .target = tensor(layout.part.target, target_type(info, read_type_))};
    };
    for (int i = 0; i < options.depth; ++i) {
        Slot& added = ring_.emplace_back();
        added.full = batch_for(full_);
        if (rest > 0) added.last = batch_for(last_);
        added.samples.reserve(static_cast<size_t>(order.batch_size()));
    }
    for (int i = 0; i < workers_count_; ++i) workers_.emplace_back([this] { work(); });
}

Prefetcher::~Prefetcher() {
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
    }
    freed_.notify_all();
    for (std::thread& worker : workers_) worker.join();
}

// Batch taken_ - 1 is in use until the consumer has the next one. After an error nothing new is begun.
bool Prefetcher::may_begin() const {
    return !broken_ && position_.epoch < end_epoch_ && begun_ < std::max<int64_t>(taken_ - 1, 0) + static_cast<int64_t>(ring_.size());
}

void Prefetcher::begin_batch() {
    Slot& next = slot(begun_);
    const auto samples = order_.indices(position_);
    next.samples.assign(samples.begin(), samples.end());
    const auto count = static_cast<int64_t>(samples.size());
    next.layout = count == order_.batch_size() ? &full_ : &last_;
    next.batch = count == order_.batch_size() ? &next.full : &next.last;
    next.batch->position = position_;
    next.batch->count = count;
    next.batch->bytes = 0;
    next.given = next.done = 0;
    position_ = order_.next(position_);
    ++begun_;
}

void Prefetcher::read_rows(Slot& from, int64_t first, int64_t end, Desk& desk) {
    const BatchPart& part = from.layout->part;
    SampleOut out{.type = read_type_, .input_box = part.input.box, .target_box = part.target.box};
    const int64_t input_elements = numel(out.input_box.shape), input_bytes = input_elements * size_of(type_);
    const int64_t target_bytes = numel(out.target_box.shape) * size_of(from.batch->target.dtype());
    const bool rounds = type_ != read_type_;
    int64_t bytes = 0, at = first, failed = -1;
    std::exception_ptr error;
    try {
        if (!desk.scratch) desk.scratch = dataset_.make_scratch();
        if (rounds) desk.input.resize(static_cast<size_t>(input_elements));
        for (; at < end; ++at) {
            const Row& row = from.layout->rows[static_cast<size_t>(at)];
            std::byte* const input = row.input < 0 ? nullptr : from.batch->input.data() + row.input * input_bytes;
            out.input = input && rounds ? reinterpret_cast<std::byte*>(desk.input.data()) : input;
            out.target = row.target < 0 ? nullptr : from.batch->target.data() + row.target * target_bytes;
            bytes +=
                dataset_.read_sample({from.samples[static_cast<size_t>(row.row)], from.batch->position.epoch}, out, desk.scratch.get());
            if (input && rounds) round_to_bf16(desk.input.data(), reinterpret_cast<uint16_t*>(input), input_elements);
        }
    } catch (...) {
        error = std::current_exception();
        failed = at;
    }
    const std::lock_guard lock(mutex_);
    from.batch->bytes += bytes;
    from.done += end - first;
    if (error && (from.failed < 0 || failed < from.failed)) {
        from.failed = failed;
        from.error = error;
        broken_ = true;
    }
    if (from.done == from.rows()) filled_.notify_one();
}

void Prefetcher::work() {
    Desk desk;
    std::unique_lock lock(mutex_);
    const auto has_rows = [&] { return begun_ > 0 && slot(begun_ - 1).given < slot(begun_ - 1).rows(); };
    const auto no_more = [&] { return stop_ || ((broken_ || position_.epoch >= end_epoch_) && !has_rows()); };
    for (;;) {
        freed_.wait(lock, [&] { return no_more() || has_rows() || may_begin(); });
        if (no_more()) break;
        if (!has_rows()) {
            try {
                begin_batch();
            } catch (...) {  // no memory for the order of an epoch
                error_ = std::current_exception();
                broken_ = true;
                break;
            }
            freed_.notify_all();  // there are rows for the others
            if (slot(begun_ - 1).rows() == 0) filled_.notify_one();
            continue;
        }
        Slot& from = slot(begun_ - 1);
        const int64_t first = from.given, piece = std::max<int64_t>(1, from.rows() / (4 * workers_count_));
        from.given = std::min(from.rows(), workers_count_ == 1 ? from.rows() : first + piece);
        const int64_t end = from.given;
        lock.unlock();
        read_rows(from, first, end, desk);
        lock.lock();
    }
    filled_.notify_one();
}

std::vector<std::span<std::byte>> Prefetcher::memory() {
    std::vector<std::span<std::byte>> list;
    for (Slot& slot : ring_)
        for (Batch* batch : {&slot.full, &slot.last})
            for (Tensor* tensor : {&batch->input, &batch->target})
                if (tensor->bytes() > 0) list.emplace_back(tensor->data(), static_cast<size_t>(tensor->bytes()));
    return list;
}

const Batch* Prefetcher::next() {
    std::unique_lock lock(mutex_);
    const auto finished = [&] { return taken_ == begun_ && (broken_ || position_.epoch >= end_epoch_); };
    const auto ready = [&] { return error_ || finished() || (taken_ < begun_ && slot(taken_).done == slot(taken_).rows()); };
    if (!ready()) {
        const auto begin = std::chrono::steady_clock::now();
        filled_.wait(lock, ready);
        waited_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }
    if (!error_ && taken_ < begun_ && slot(taken_).error) error_ = slot(taken_).error;
    if (error_) std::rethrow_exception(error_);
    if (finished()) return nullptr;
    const Batch* batch = slot(taken_).batch;
    ++taken_;
    lock.unlock();
    freed_.notify_all();
    return batch;
}

}  // namespace convoy
