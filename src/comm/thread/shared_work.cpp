#include "comm/thread/shared_work.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "comm/combine.h"

namespace convoy {

namespace {

// Elements are combined in blocks that stay in the first-level cache.
constexpr int64_t kBlockBytes = 8 << 10;

void copy_bytes(std::byte* dst, const std::byte* src, int64_t bytes) {
    if (dst != src && bytes > 0) std::memcpy(dst, src, static_cast<size_t>(bytes));
}

// The elements [first, first + count) of every rank's `in`, combined in the order of places, block by block; `store` gets each block.
template <class Store>
void combine_blocks(const SharedGroup& group, int64_t first, int64_t count, const Store& store) {
    alignas(64) std::array<std::byte, kBlockBytes> sum;
    const CollectiveCall& call = group.call(0);
    const int64_t size = size_of(call.dtype), block = kBlockBytes / size;
    const Combine combine = combine_of(call.dtype, call.op);
    for (int64_t done = 0; done < count; done += block) {
        const int64_t n = std::min(block, count - done), at = (first + done) * size;
        combine(sum.data(), group.call(0).in + at, group.call(1).in + at, n);
        for (int p = 2; p < group.size(); ++p) combine(sum.data(), sum.data(), group.call(p).in + at, n);
        store(done, sum.data(), n * size);
    }
}

// Each place combines its part of the vector and writes it to all ranks; nobody else touches that part.
void all_reduce(const SharedGroup& group, int place) {
    const CollectiveCall& call = group.call(place);
    const int64_t size = size_of(call.dtype), line = 64 / size;
    const int64_t lines = (call.count + line - 1) / line;
    const int64_t first = std::min(call.count, lines * place / group.size() * line);
    const int64_t last = std::min(call.count, lines * (place + 1) / group.size() * line);
    combine_blocks(group, first, last - first, [&](int64_t done, const std::byte* sum, int64_t bytes) {
        for (int p = 0; p < group.size(); ++p) copy_bytes(group.call(p).out + (first + done) * size, sum, bytes);
    });
}

void reduce_scatter(const SharedGroup& group, int place) {
    const CollectiveCall& call = group.call(place);
    const int64_t first = offsets_of(call.counts)[static_cast<size_t>(place)];
    combine_blocks(group, first, call.counts[static_cast<size_t>(place)], [&](int64_t done, const std::byte* sum, int64_t bytes) {
        copy_bytes(call.out + done * size_of(call.dtype), sum, bytes);
    });
}

void all_gather(const SharedGroup& group, int place) {
    const CollectiveCall& call = group.call(place);
    const auto offsets = offsets_of(call.counts);
    for (int p = 0; p < group.size(); ++p) {
        const auto at = static_cast<size_t>(p);
        copy_bytes(call.out + offsets[at] * size_of(call.dtype), group.call(p).in, call.counts[at] * size_of(call.dtype));
    }
}

void all_to_all(const SharedGroup& group, int place) {
    const CollectiveCall& call = group.call(place);
    const auto offsets = offsets_of(call.other_counts);
    for (int p = 0; p < group.size(); ++p) {
        const CollectiveCall& theirs = group.call(p);
        const auto to = static_cast<size_t>(place), from = static_cast<size_t>(p);
        CONVOY_CHECK(theirs.counts[to] == call.other_counts[from], "place {} sends {} elements to place {}, which expects {}", p,
                     theirs.counts[to], place, call.other_counts[from]);
        copy_bytes(call.out + offsets[from] * size_of(call.dtype), theirs.in + offsets_of(theirs.counts)[to] * size_of(call.dtype),
                   theirs.counts[to] * size_of(call.dtype));
    }
}

void require_equal(const CollectiveCall& mine, const CollectiveCall& theirs, int place) {
    require(mine.kind == theirs.kind && mine.dtype == theirs.dtype && mine.op == theirs.op && mine.count == theirs.count &&
                mine.root == theirs.root && mine.counts.size() == theirs.counts.size(),
            "the ranks of a group differ: {} of {} elements of {} here, {} of {} elements of {} at place {}", name_of(mine.kind),
            mine.count, name_of(mine.dtype), name_of(theirs.kind), theirs.count, name_of(theirs.dtype), place);
}

}  // namespace

void share_work(const SharedGroup& group, int place) {
    const CollectiveCall& call = group.call(place);
    for (int p = 0; p < group.size(); ++p) require_equal(call, group.call(p), p);
    switch (call.kind) {
        case Traffic::AllReduce: return all_reduce(group, place);
        case Traffic::ReduceScatter: return reduce_scatter(group, place);
        case Traffic::AllGather: return all_gather(group, place);
        case Traffic::AllToAll: return all_to_all(group, place);
        case Traffic::Broadcast: return copy_bytes(call.out, group.call(call.root).in, call.count * size_of(call.dtype));
        case Traffic::Barrier:
        case Traffic::Transfer: break;
    }
}

}  // namespace convoy
