#include "comm/measure.h"

#include <algorithm>
#include <cstring>

#include "tensor/tensor.h"

namespace convoy {

namespace {

// The buffers of one size: a vector of f32 in pieces, as even as can be.
struct Case {
    Case(int64_t bytes, int size) : counts(even_counts(bytes / 4, size)), whole(bytes + 4), piece(counts[0] * 4 + 4), count(bytes / 4) {
        std::memset(whole.data(), 0, static_cast<size_t>(whole.bytes()));
        std::memset(piece.data(), 0, static_cast<size_t>(piece.bytes()));
    }
    void run(Communicator& communicator, Traffic kind, Algorithm algorithm) const {
        switch (kind) {
            case Traffic::AllReduce: return communicator.all_reduce(whole.data(), count, DType::f32, ReduceOp::Sum, algorithm);
            case Traffic::ReduceScatter:
                return communicator.reduce_scatter(whole.data(), piece.data(), counts, DType::f32, ReduceOp::Sum, algorithm);
            case Traffic::AllGather: return communicator.all_gather(piece.data(), whole.data(), counts, DType::f32, algorithm);
            case Traffic::Broadcast: return communicator.broadcast(whole.data(), count, DType::f32, 0, algorithm);
            case Traffic::Barrier: return communicator.barrier(algorithm);
            default: fail("{} cannot be measured; expected all_reduce, reduce_scatter, all_gather, broadcast or barrier", name_of(kind));
        }
    }

    std::vector<int64_t> counts;
    Buffer whole, piece;
    int64_t count;
};

// The time of the slowest rank, from a common start.
double timed(Communicator& communicator, const Case& problem, Traffic kind, Algorithm algorithm) {
    communicator.barrier();
    const auto start = Clock::now();
    problem.run(communicator, kind, algorithm);
    double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    communicator.all_reduce(reinterpret_cast<std::byte*>(&seconds), 1, DType::f64, ReduceOp::Max);
    return seconds;
}

// All ranks see the same times and so repeat equally often.
double median_time(Communicator& communicator, const Case& problem, Traffic kind, Algorithm algorithm, const MeasureOptions& options) {
    timed(communicator, problem, kind, algorithm);  // the first is paid for by memory and connections
    std::vector<double> times;
    double spent = 0;
    while (times.size() < 3 || (spent < options.seconds_each && static_cast<int>(times.size()) < options.most_repetitions)) {
        times.push_back(timed(communicator, problem, kind, algorithm));
        spent += times.back();
    }
    std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
    return times[times.size() / 2];
}

}  // namespace

std::vector<CollectiveTime> measure(Communicator& communicator, const MeasureOptions& options) {
    const LabelScope label(communicator.channel(), "measurement");
    std::vector<CollectiveTime> times;
    for (const Traffic kind : options.kinds) {
        for (const int64_t bytes : options.bytes) {
            const Case problem(bytes, communicator.size());
            for (const Algorithm algorithm : algorithms_of(kind)) {
                const auto& asked = options.algorithms;
                if (!asked.empty() && std::find(asked.begin(), asked.end(), algorithm) == asked.end()) continue;
                const double seconds = median_time(communicator, problem, kind, algorithm, options);
                times.push_back({kind, communicator.size(), communicator.one_node(), bytes, algorithm, seconds});
            }
        }
    }
    return times;
}

CollectiveTable fastest(const std::vector<CollectiveTime>& times) {
    CollectiveTable table;
    const auto same = [](const CollectiveTime& a, const CollectiveTime& b) {
        return a.kind == b.kind && a.group_size == b.group_size && a.one_node == b.one_node && a.bytes == b.bytes;
    };
    for (const CollectiveTime& time : times) {
        const CollectiveTime* best = &time;
        for (const CollectiveTime& other : times)
            if (same(other, time) && other.seconds < best->seconds) best = &other;
        const CollectiveTime* chosen = best;
        for (const CollectiveTime& other : times)
            if (same(other, time) && other.seconds <= best->seconds * 1.03 && other.algorithm < chosen->algorithm) chosen = &other;
        table.set({time.kind, time.group_size, time.one_node, time.bytes, chosen->algorithm});
    }
    return table;
}

}  // namespace convoy
