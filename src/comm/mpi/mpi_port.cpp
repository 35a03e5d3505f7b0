#include "comm/mpi/mpi_port.h"

#include <cstring>
#include <limits>

#include "comm/mpi/mpi_calls.h"

namespace convoy {

namespace {

bool reduces(const CollectiveCall& call) { return call.kind == Traffic::AllReduce || call.kind == Traffic::ReduceScatter; }

// What is only moved goes by its size.
MPI_Datatype type_of(const CollectiveCall& call) {
    if (reduces(call)) {
        switch (call.dtype) {
            case DType::f64: return MPI_DOUBLE;
            case DType::f32: return MPI_FLOAT;
            case DType::i64: return MPI_INT64_T;
            case DType::i32: return MPI_INT32_T;
            default: return MPI_UINT8_T;
        }
    }
    switch (size_of(call.dtype)) {
        case 8: return MPI_UINT64_T;
        case 4: return MPI_UINT32_T;
        case 2: return MPI_UINT16_T;
        default: return MPI_UINT8_T;
    }
}

MPI_Op op_of(ReduceOp op) {
    switch (op) {
        case ReduceOp::Max: return MPI_MAX;
        case ReduceOp::Min: return MPI_MIN;
        default: return MPI_SUM;
    }
}

void to_int(std::span<const int64_t> counts, std::vector<int>& as_int, std::vector<int>& offsets) {
    as_int.assign(counts.begin(), counts.end());
    offsets.clear();
    int64_t offset = 0;
    for (const int64_t c : counts) {
        offsets.push_back(static_cast<int>(offset));
        offset += c;
    }
}

int64_t elements_of(std::span<const int64_t> counts) { return offsets_of(counts).back(); }

}  // namespace

bool MpiPort::offers(const CollectiveCall& call) const {
    if (shared_ && call.kind == Traffic::AllReduce) return true;
    constexpr int64_t kMost = std::numeric_limits<int>::max();
    const bool fits = call.count <= kMost && elements_of(call.counts) <= kMost && elements_of(call.other_counts) <= kMost;
    return fits && !(reduces(call) && call.dtype == DType::bf16);
}

bool MpiPort::run(const CollectiveCall& call, Deadline deadline) {
    if (shared_ && call.kind == Traffic::AllReduce) return shared_->all_reduce(call, deadline);
    if (shared_ && call.kind == Traffic::Barrier) return shared_->barrier(deadline);
    MPI_Request request = start(call);
    if (!wait_for(request, deadline)) return false;
    finish(call);
    return true;
}

MPI_Request MpiPort::start(const CollectiveCall& call) {
    const MPI_Datatype type = type_of(call);
    const auto count = static_cast<int>(call.count);
    to_int(call.counts, counts_, offsets_);
    to_int(call.other_counts, other_counts_, other_offsets_);
    MPI_Request request = MPI_REQUEST_NULL;
    switch (call.kind) {
        case Traffic::AllReduce:
            check_mpi(MPI_Iallreduce(MPI_IN_PLACE, call.out, count, type, op_of(call.op), comm_, &request), "MPI_Iallreduce");
            break;
        case Traffic::ReduceScatter: {
            const int64_t bytes = call.counts[static_cast<size_t>(place_)] * size_of(call.dtype);
            if (result_.bytes() < bytes) result_ = Buffer(bytes);
            check_mpi(MPI_Ireduce_scatter(call.in, result_.data(), counts_.data(), type, op_of(call.op), comm_, &request),
                      "MPI_Ireduce_scatter");
            break;
        }
        case Traffic::AllGather: {
            const auto own = static_cast<size_t>(place_);
            const bool in_place = call.in == call.out + int64_t{offsets_[own]} * size_of(call.dtype);
            check_mpi(MPI_Iallgatherv(in_place ? MPI_IN_PLACE : call.in, counts_[own], type, call.out, counts_.data(), offsets_.data(),
                                      type, comm_, &request),
                      "MPI_Iallgatherv");
            break;
        }
        case Traffic::AllToAll:
            check_mpi(MPI_Ialltoallv(call.in, counts_.data(), offsets_.data(), type, call.out, other_counts_.data(), other_offsets_.data(),
                                     type, comm_, &request),
                      "MPI_Ialltoallv");
            break;
        case Traffic::Broadcast: check_mpi(MPI_Ibcast(call.out, count, type, call.root, comm_, &request), "MPI_Ibcast"); break;
        case Traffic::Barrier:
        case Traffic::Transfer: check_mpi(MPI_Ibarrier(comm_, &request), "MPI_Ibarrier"); break;
    }
    return request;
}

void MpiPort::finish(const CollectiveCall& call) {
    if (call.kind != Traffic::ReduceScatter) return;
    const int64_t bytes = call.counts[static_cast<size_t>(place_)] * size_of(call.dtype);
    if (bytes > 0) std::memcpy(call.out, result_.data(), static_cast<size_t>(bytes));
}

}  // namespace convoy
