#include "comm/nccl/nccl_group.h"

#include <algorithm>

#include "base/error.h"
#include "comm/patience.h"

namespace convoy {

namespace {

bool even(const std::vector<int64_t>& counts) {
    return std::all_of(counts.begin(), counts.end(), [&](int64_t c) { return c == counts[0]; });
}

size_t elements(int64_t count) { return static_cast<size_t>(count); }

}  // namespace

NcclGroup::NcclGroup(const ncclUniqueId& id, int size, int place, Limits limits) : size_(size), place_(place), limits_(std::move(limits)) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    try {
        check_nccl(ncclCommInitRankConfig(&comm_, size, id, place, &config), "ncclCommInitRank");
        wait_until_ready("ncclCommInitRank", limits_.connect);
    } catch (...) {
        if (comm_) ncclCommAbort(comm_);
        throw;
    }
}

// Recordings that hold its calls are gone by now: until they are, NCCL does not let go of a communicator.
NcclGroup::~NcclGroup() {
    if (aborting_.joinable()) {
        aborting_.join();
        return;
    }
    constexpr auto kGoodbye = std::chrono::seconds(5);
    try {
        check_nccl(ncclCommFinalize(comm_), "ncclCommFinalize");
        wait_until_ready("ncclCommFinalize", kGoodbye);
        ncclCommDestroy(comm_);
    } catch (const Error&) {  // the others are gone, or will not come
        ncclCommAbort(comm_);
    }
}

void NcclGroup::wait_until_ready(const char* call, std::chrono::milliseconds limit) const {
    const Deadline deadline = Clock::now() + limit;
    ncclResult_t state = ncclInProgress;
    for (Patience patience;;) {
        check_nccl(ncclCommGetAsyncError(comm_, &state), "ncclCommGetAsyncError");
        if (state != ncclInProgress) break;
        require(!aborted_, "{} was ended", call);
        limits_.check();
        require(patience.pause(deadline), "{} of {} ranks took longer than {:.3g} s", call, size_,
                static_cast<double>(limit.count()) * 1e-3);
    }
    check_nccl(state, call);
}

std::string NcclGroup::trouble() const {
    const std::unique_lock calls(calls_, std::try_to_lock);
    if (!calls || aborted_) return "";  // who is calling finds out
    ncclResult_t state = ncclSuccess;
    const ncclResult_t asked = ncclCommGetAsyncError(comm_, &state);
    if (asked != ncclSuccess) state = asked;
    return state == ncclSuccess || state == ncclInProgress ? "" : "NCCL reports: " + nccl_text(state);
}

// NCCL stops the kernels at once, but returns only when no recording holds a call of the communicator any more; that is for whoever
// unwinds to see to, so nobody may wait here.
void NcclGroup::abort() {
    aborted_ = true;
    const std::unique_lock calls(calls_, std::try_to_lock);
    if (calls && !aborting_.joinable()) aborting_ = std::thread([comm = comm_] { ncclCommAbort(comm); });
}

void NcclGroup::enqueue(const DeviceCall& call, cudaStream_t stream) {
    std::unique_lock calls(calls_);
    try {
        require(!aborted_, "{} was ended", name_of(call.call.kind));
        check_nccl(ncclGroupStart(), "ncclGroupStart");
        try {
            enqueue_parts(call, stream);
        } catch (...) {
            ncclGroupEnd();
            throw;
        }
        check_nccl(ncclGroupEnd(), "ncclGroupEnd");
        wait_until_ready(name_of(call.call.kind).data(), limits_.call);
    } catch (...) {
        calls.unlock();
        if (aborted_) abort();
        throw;
    }
    calls.unlock();
    if (aborted_) abort();  // it came while this thread had the communicator
}

// NCCL's own reduce_scatter and all_gather know pieces of one size only; others are several reductions or broadcasts, as one.
void NcclGroup::enqueue_parts(const DeviceCall& bound, cudaStream_t stream) const {
    const CollectiveCall& call = bound.call;
    const auto& counts = bound.counts;
    if (call.kind == Traffic::Transfer) {
        for (const Outgoing& m : bound.sends)
            if (!m.data.empty()) check_nccl(ncclSend(m.data.data(), m.data.size(), ncclInt8, m.to, comm_, stream), "ncclSend");
        for (const Incoming& m : bound.receives)
            if (!m.data.empty()) check_nccl(ncclRecv(m.data.data(), m.data.size(), ncclInt8, m.from, comm_, stream), "ncclRecv");
        return;
    }
    const ncclDataType_t type = nccl_type(call.dtype);
    const ncclRedOp_t op = nccl_op(call.op);
    const std::vector<int64_t> offsets = offsets_of(counts);
    const auto offset = [&](size_t place) { return offsets[place] * size_of(call.dtype); };
    switch (call.kind) {
        case Traffic::AllReduce:
            check_nccl(ncclAllReduce(call.out, call.out, elements(call.count), type, op, comm_, stream), "ncclAllReduce");
            return;
        case Traffic::Broadcast:
            check_nccl(ncclBroadcast(call.out, call.out, elements(call.count), type, call.root, comm_, stream), "ncclBroadcast");
            return;
        case Traffic::ReduceScatter:
            if (even(counts)) {
                check_nccl(ncclReduceScatter(call.in, call.out, elements(counts[0]), type, op, comm_, stream), "ncclReduceScatter");
                return;
            }
            for (size_t p = 0; p < counts.size(); ++p)
                if (counts[p] > 0)
                    check_nccl(ncclReduce(call.in + offset(p), call.out, elements(counts[p]), type, op, static_cast<int>(p), comm_, stream),
                               "ncclReduce");
            return;
        case Traffic::AllGather:
            if (even(counts)) {
                check_nccl(ncclAllGather(call.in, call.out, elements(counts[0]), type, comm_, stream), "ncclAllGather");
                return;
            }
            for (size_t p = 0; p < counts.size(); ++p) {
                std::byte* const piece = call.out + offset(p);
                if (counts[p] > 0)
                    check_nccl(ncclBroadcast(static_cast<int>(p) == place_ ? call.in : piece, piece, elements(counts[p]), type,
                                             static_cast<int>(p), comm_, stream),
                               "ncclBroadcast");
            }
            return;
        default: CONVOY_CHECK(false, "{} is no traffic between devices", name_of(call.kind));
    }
}

}  // namespace convoy
