#include "comm/mpi/mpi_shared.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>

#include "comm/combine.h"
#include "comm/mpi/mpi_calls.h"

namespace convoy {

namespace {

struct Range {
    int64_t first, count;
};

// The share of a place of so many elements, cut at cache lines.
Range share_of(int64_t count, int64_t element, int place, int size) {
    const int64_t line = 64 / element, lines = (count + line - 1) / line;
    const int64_t first = std::min(count, lines * place / size * line), last = std::min(count, lines * (place + 1) / size * line);
    return {first, last - first};
}

void copy_bytes(std::byte* dst, const std::byte* src, int64_t bytes) {
    if (bytes > 0) std::memcpy(dst, src, static_cast<size_t>(bytes));
}

}  // namespace

std::unique_ptr<MpiShared> MpiShared::make(MPI_Comm comm) {
    static_assert(std::atomic<uint64_t>::is_always_lock_free);
    std::unique_ptr<MpiShared> shared(new MpiShared);
    void* base = nullptr;
    int made =
        MPI_Win_allocate_shared(sizeof(Head) + kBlocks * kBlockBytes, 1, MPI_INFO_NULL, comm, &base, &shared->window_) == MPI_SUCCESS;
    check_mpi(MPI_Allreduce(MPI_IN_PLACE, &made, 1, MPI_INT, MPI_MIN, comm), "MPI_Allreduce");
    if (!made) return nullptr;
    int size = 0;
    MPI_Comm_size(comm, &size);
    MPI_Comm_rank(comm, &shared->place_);
    check_mpi(MPI_Win_lock_all(MPI_MODE_NOCHECK, shared->window_), "MPI_Win_lock_all");
    new (base) Head{};
    for (int p = 0; p < size; ++p) {
        MPI_Aint bytes = 0;
        int unit = 0;
        void* start = nullptr;
        check_mpi(MPI_Win_shared_query(shared->window_, p, &bytes, &unit, &start), "MPI_Win_shared_query");
        shared->heads_.push_back(static_cast<Head*>(start));
    }
    check_mpi(MPI_Barrier(comm), "MPI_Barrier");  // nobody counts before all have begun at zero
    return shared;
}

MpiShared::~MpiShared() {
    if (window_ == MPI_WIN_NULL || std::uncaught_exceptions() > 0) return;
    MPI_Win_unlock_all(window_);
    MPI_Win_free(&window_);
}

std::byte* MpiShared::block(int place, uint64_t round) const {
    auto* const blocks = reinterpret_cast<std::byte*>(heads_[static_cast<size_t>(place)] + 1);
    return blocks + static_cast<int64_t>(round % kBlocks) * kBlockBytes;
}

void MpiShared::signal() { heads_[static_cast<size_t>(place_)]->signals.store(++signals_, std::memory_order_release); }

bool MpiShared::wait_for_all(Deadline deadline) const {
    Patience patience;
    for (const Head* head : heads_)
        while (head->signals.load(std::memory_order_acquire) < signals_)
            if (!patience.pause(deadline)) return false;
    return true;
}

bool MpiShared::barrier(Deadline deadline) {
    signal();
    return wait_for_all(deadline);
}

// In each round a rank signals twice: its block is in, and its share is combined. The first signal of a round comes after it has copied out the round before.
// So when all have signalled it, nobody reads blocks of earlier rounds any more, and the other block can be filled while the shares are
// being combined.
bool MpiShared::all_reduce(const CollectiveCall& call, Deadline deadline) {
    const int64_t most = kBlockBytes / size_of(call.dtype);
    const auto count_at = [&](int64_t first) { return std::min(most, call.count - first); };
    if (call.count == 0) return true;
    copy_in(call, 0, count_at(0));
    for (int64_t first = 0; first < call.count; first += most) {
        signal();
        if (!wait_for_all(deadline)) return false;
        combine_share(call, first, count_at(first));
        signal();
        const int64_t next = first + most;
        ++round_;
        if (next < call.count) copy_in(call, next, count_at(next));
        if (!wait_for_all(deadline)) return false;
        copy_out(call, first, count_at(first));
    }
    return true;
}

// All but its own share, which nobody else needs.
void MpiShared::copy_in(const CollectiveCall& call, int64_t first, int64_t count) const {
    const int64_t size = size_of(call.dtype);
    const Range own = share_of(count, size, place_, static_cast<int>(heads_.size()));
    const std::byte* const src = call.in + first * size;
    std::byte* const dst = block(place_, round_);
    const int64_t after = own.first + own.count;
    copy_bytes(dst, src, own.first * size);
    copy_bytes(dst + after * size, src + after * size, (count - after) * size);
}

// In the order of places, in pieces that stay in the first-level cache; into the block, for the others, and home.
void MpiShared::combine_share(const CollectiveCall& call, int64_t first, int64_t count) const {
    const int64_t size = size_of(call.dtype), piece = (8 << 10) / size;
    const Combine combine = combine_of(call.dtype, call.op);
    const Range own = share_of(count, size, place_, static_cast<int>(heads_.size()));
    for (int64_t done = 0; done < own.count; done += piece) {
        const int64_t n = std::min(piece, own.count - done), at = (own.first + done) * size;
        std::byte* const home = call.out + first * size + at;
        std::byte* const sum = block(place_, round_) + at;
        const auto part = [&](int p) { return p == place_ ? home : block(p, round_) + at; };
        combine(sum, part(0), part(1), n);
        for (int p = 2; p < static_cast<int>(heads_.size()); ++p) combine(sum, sum, part(p), n);
        copy_bytes(home, sum, n * size);
    }
}

// Called when round_ has gone on to the next.
void MpiShared::copy_out(const CollectiveCall& call, int64_t first, int64_t count) const {
    const int64_t size = size_of(call.dtype);
    for (int p = 0; p < static_cast<int>(heads_.size()); ++p) {
        if (p == place_) continue;
        const Range share = share_of(count, size, p, static_cast<int>(heads_.size()));
        copy_bytes(call.out + (first + share.first) * size, block(p, round_ - 1) + share.first * size, share.count * size);
    }
}

}  // namespace convoy
