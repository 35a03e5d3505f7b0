#include "data/prefetch.h"

#include <algorithm>
#include <atomic>
#include <chrono>

#include "data/synthetic.h"
#include "data/test_files.h"

namespace convoy {
namespace {

// Sample i is the number i, with label i; it can be slow, and it can break at one sample.
class Numbers final : public Dataset {
  public:
    explicit Numbers(int64_t count, int64_t broken = -1, int delay_ms = 0) : count_(count), broken_(broken), delay_ms_(delay_ms) {}
    const DatasetInfo& info() const override { return info_; }
    int64_t size() const override { return count_; }
    int64_t read_sample(SampleId id, const SampleOut& out, Scratch*) const override {
        if (delay_ms_) std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms_));
        require(id.index != broken_, "sample {} is broken", id.index);
        if (out.input) *reinterpret_cast<float*>(out.input) = static_cast<float>(id.index);
        if (out.target) *reinterpret_cast<int32_t*>(out.target) = static_cast<int32_t>(id.index);
        ++reads;
        return 4;
    }
    mutable std::atomic<int> reads = 0;

  private:
    DatasetInfo info_{"numbers", {1}, TargetKind::Class, {}, 1000000};
    int64_t count_, broken_;
    int delay_ms_;
};

std::vector<int64_t> labels(const Batch& batch) {
    const auto values = batch.target.as<int32_t>().first(static_cast<size_t>(batch.count));
    return {values.begin(), values.end()};
}

TEST(Prefetch, GivesTheBatchesOfTheOrder) {
    const Numbers data(23);
    for (const int depth : {2, 3, 8}) {
        BatchOrder order(23, 5, 9, true);
        Prefetcher prefetcher(data, order, {.depth = depth, .workers = depth - 1, .end_epoch = 4});
        for (BatchPosition at; at.epoch < 4; at = order.next(at)) {
            const Batch* batch = prefetcher.next();
            ASSERT_NE(batch, nullptr);
            EXPECT_EQ(batch->position, at);
            EXPECT_EQ(batch->count, at.batch == 4 ? 3 : 5);
            EXPECT_EQ(batch->input.shape(), (Shape{batch->count, 1}));
            EXPECT_EQ(batch->bytes, 4 * batch->count);
            const auto expected = order.indices(at);
            EXPECT_EQ(labels(*batch), (std::vector<int64_t>{expected.begin(), expected.end()}));
        }
        EXPECT_EQ(prefetcher.next(), nullptr);
        EXPECT_EQ(prefetcher.next(), nullptr);
    }
}

TEST(Prefetch, GoesOnWhereAnotherStopped) {
    const Numbers data(23);
    BatchOrder order(23, 5, 9, true);
    Prefetcher whole(data, order, {}), rest(data, order, {.start = {1, 3}});
    for (int i = 0; i < 8; ++i) whole.next();
    for (int i = 0; i < 10; ++i) {
        const Batch *a = whole.next(), *b = rest.next();
        EXPECT_EQ(a->position, b->position);
        EXPECT_EQ(labels(*a), labels(*b));
    }
}

// The number of a sample and a seventh, which bf16 cannot hold.
class Fractions final : public Dataset {
  public:
    const DatasetInfo& info() const override { return info_; }
    int64_t size() const override { return 300; }
    int64_t read_sample(SampleId id, const SampleOut& out, Scratch*) const override {
        EXPECT_EQ(out.type, DType::f32);
        if (out.input) {
            auto* const x = reinterpret_cast<float*>(out.input);
            for (int64_t i = 0; i < numel(out.input_box.shape); ++i) x[i] = static_cast<float>(id.index + i) + 1.0f / 7;
        }
        if (out.target) *reinterpret_cast<float*>(out.target) = static_cast<float>(id.index) + 1.0f / 7;
        return 4;
    }

  private:
    DatasetInfo info_{"fractions", {5}, TargetKind::Regression, {1}, 0};
};

TEST(Prefetch, WorkersRoundInputs) {
    const Fractions data;
    const BatchOrder order(300, 32, 3, true);
    for (const int workers : {1, 4}) {
        Prefetcher plain(data, order, {.workers = workers, .end_epoch = 1}),
            rounded(data, order, {.type = DType::bf16, .workers = workers, .end_epoch = 1});
        while (const Batch* a = plain.next()) {
            const Batch* b = rounded.next();
            ASSERT_NE(b, nullptr);
            EXPECT_EQ(b->input, a->input.to(DType::bf16));
            EXPECT_EQ(b->target, a->target);
        }
        EXPECT_EQ(rounded.next(), nullptr);
    }
}

TEST(Prefetch, TellsItsMemory) {
    const Numbers data(23);
    const BatchOrder order(23, 5, 9, true);
    Prefetcher prefetcher(data, order, {.depth = 3, .end_epoch = 1});
    const auto memory = prefetcher.memory();
    EXPECT_EQ(memory.size(), 3u * 4);  // inputs and targets of whole batches and of the last one
    while (const Batch* batch = prefetcher.next())
        EXPECT_TRUE(std::any_of(memory.begin(), memory.end(), [&](auto bytes) {
            return bytes.data() == batch->input.data() && static_cast<int64_t>(bytes.size()) == batch->input.bytes();
        }));
}

TEST(Prefetch, ABatchStaysUntilTheNextIsAsked) {
    const Numbers data(100);
    BatchOrder order(100, 10, 1, false);
    Prefetcher prefetcher(data, order, {.depth = 2});
    for (int64_t i = 0; i < 10; ++i) {
        const Batch* batch = prefetcher.next();
        const auto before = labels(*batch);
        // The worker fills the other slot meanwhile, and no more.
        while (data.reads < 10 * (i + 2)) std::this_thread::yield();
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        EXPECT_EQ(data.reads, 10 * (i + 2));
        EXPECT_EQ(labels(*batch), before);
        EXPECT_EQ(before[0], 10 * i);
    }
}

TEST(Prefetch, ErrorsSurfaceInTheirPlace) {
    const Numbers data(20, 12);
    BatchOrder order(20, 5, 1, false);
    for (const int workers : {1, 3}) {
        Prefetcher prefetcher(data, order, {.workers = workers});
        EXPECT_EQ(prefetcher.next()->position.batch, 0);
        EXPECT_EQ(prefetcher.next()->position.batch, 1);
        expect_parts(error_of([&] { prefetcher.next(); }), {"sample 12 is broken"});
        EXPECT_THROW(prefetcher.next(), Error);
    }
}

// Of batches of 5, two readers: one has samples 0 and 3 of each and the targets of 3 and 4, of the last (3) only sample 1; the other nothing of the last.
TEST(Prefetch, PartsOfBatches) {
    const Numbers data(23);
    BatchOrder order(23, 5, 9, true);
    const Box one = Box::whole({1}), scalar = Box::whole({});
    const BatchPart full{{{0, 3}, one}, {{3, 4}, scalar}};
    for (const bool some : {true, false}) {
        const BatchPart last = some ? BatchPart{{{1}, one}, {{1}, scalar}} : BatchPart{{{}, one}, {{}, scalar}};
        Prefetcher prefetcher(data, order, {.workers = 3, .end_epoch = 2, .full = full, .last = last});
        for (BatchPosition at; at.epoch < 2; at = order.next(at)) {
            const Batch* batch = prefetcher.next();
            ASSERT_NE(batch, nullptr);
            const auto samples = order.indices(at);
            EXPECT_EQ(batch->count, static_cast<int64_t>(samples.size()));
            if (batch->count == 5) {
                EXPECT_EQ(batch->bytes, 3 * 4);  // rows 0, 3 and 4, each once
                EXPECT_EQ(batch->input.as<float>()[1], static_cast<float>(samples[3]));
                EXPECT_EQ(batch->target.as<int32_t>()[1], samples[4]);
            } else if (some) {
                EXPECT_EQ(batch->input.as<float>()[0], static_cast<float>(samples[1]));
            } else {
                EXPECT_EQ(batch->bytes, 0);
            }
        }
        EXPECT_EQ(prefetcher.next(), nullptr);
    }
}

TEST(Prefetch, StopsWheneverItIsDestroyed) {
    const Numbers data(1000);
    BatchOrder order(1000, 7, 1, true);
    for (int taken = 0; taken < 20; ++taken) {
        Prefetcher prefetcher(data, order, {.depth = 2 + taken % 3});
        for (int i = 0; i < taken % 5; ++i) prefetcher.next();
    }
    const Numbers slow(1000000, -1, 1);
    const auto begin = std::chrono::steady_clock::now();
    { Prefetcher prefetcher(slow, BatchOrder(1000000, 10, 1, false), {}); }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST(Prefetch, ReportsWaiting) {
    const Numbers slow(8, -1, 5);
    Prefetcher prefetcher(slow, BatchOrder(8, 4, 1, false), {.end_epoch = 1});
    EXPECT_EQ(prefetcher.waited_seconds(), 0);
    prefetcher.next();
    prefetcher.next();
    EXPECT_GT(prefetcher.waited_seconds(), 0.01);
    EXPECT_LT(prefetcher.waited_seconds(), 5.0);
}

TEST(Prefetch, RealTargetsHaveTheTypeOfTheInput) {
    const auto data = make_synthetic({"s", {1, 4}, TargetKind::Regression, {2}, 0}, 6, 1, 1.0);
    Prefetcher prefetcher(*data, BatchOrder(6, 4, 1, false), {.type = DType::f64});
    Tensor input = make_input(data->info(), 4, DType::f64), target = make_target(data->info(), 4, DType::f64);
    data->read(std::vector<int64_t>{0, 1, 2, 3}, input, target);
    const Batch* batch = prefetcher.next();
    EXPECT_EQ(batch->input, input);
    EXPECT_EQ(batch->target, target);
}

TEST(Prefetch, Refuses) {
    const Numbers data(20);
    expect_parts(error_of([&] { Prefetcher(data, BatchOrder(21, 5, 1, false), {}); }), {"20 samples", "21"});
    expect_parts(error_of([&] { Prefetcher(data, BatchOrder(20, 5, 1, false), {.start = {0, 4}}); }), {"batch 4", "4 batches"});
    expect_parts(error_of([&] { Prefetcher(data, BatchOrder(20, 5, 1, false), {.depth = 1}); }), {"at least 2"});
}

}  // namespace
}  // namespace convoy
