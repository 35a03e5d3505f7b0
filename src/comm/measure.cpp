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

// Small ones follow each other in one go, as they do in a step.
int times_at_once(int64_t bytes) { return static_cast<int>(std::clamp<int64_t>((1 << 20) / std::max<int64_t>(bytes, 1), 1, kMostAtOnce)); }

Carrier inline_carrier() {
    return [](const std::function<void()>& work) {
        return [work](int times) {
            for (int i = 0; i < times; ++i) work();
        };
    };
}

// The time of the slowest rank for one of `times`, from a common start.
double timed(Communicator& communicator, const std::function<void(int)>& runner, int times) {
    communicator.barrier();
    const auto start = Clock::now();
    runner(times);
    double seconds = std::chrono::duration<double>(Clock::now() - start).count() / times;
    communicator.all_reduce(reinterpret_cast<std::byte*>(&seconds), 1, DType::f64, ReduceOp::Max);
    return seconds;
}

// The median time of each. They take turns, so that no moment of a busy machine stands for one of them alone. All ranks see the same times and so repeat
// equally often.
std::vector<double> median_times(Communicator& communicator, const std::vector<std::function<void(int)>>& runners, int at_once,
                                 const CollectiveMeasureOptions& options) {
    for (const auto& runner : runners) timed(communicator, runner, at_once);  // the first is paid for by memory and connections
    std::vector<std::vector<double>> times(runners.size());
    std::vector<double> spent(runners.size(), 0);
    const auto goes_on = [&](size_t i) {
        return times[i].size() < 3 || (spent[i] < options.seconds_each && static_cast<int>(times[i].size()) < options.most_repetitions);
    };
    for (bool any = true; any;) {
        any = false;
        for (size_t i = 0; i < runners.size(); ++i) {
            if (!goes_on(i)) continue;
            times[i].push_back(timed(communicator, runners[i], at_once));
            spent[i] += times[i].back() * at_once;
            any = true;
        }
    }
    std::vector<double> medians;
    for (std::vector<double>& list : times) {
        const auto middle = list.begin() + static_cast<std::ptrdiff_t>(list.size() / 2);
        std::nth_element(list.begin(), middle, list.end());
        medians.push_back(*middle);
    }
    return medians;
}

// Of those asked for what the kind has.
std::vector<Algorithm> wanted(Traffic kind, const std::vector<Algorithm>& asked) {
    const std::vector<Algorithm> all = algorithms_of(kind);
    if (asked.empty()) return all;
    std::vector<Algorithm> found;
    for (const Algorithm a : asked)
        if (a == Algorithm::Auto || std::find(all.begin(), all.end(), a) != all.end()) found.push_back(a);
    return found;
}

}  // namespace

std::vector<CollectiveTime> measure(Communicator& communicator, const CollectiveMeasureOptions& options) {
    const LabelScope label(communicator.channel(), "measurement");
    const Carrier carrier = options.carrier ? options.carrier : inline_carrier();
    std::vector<CollectiveTime> times;
    for (const Traffic kind : options.kinds) {
        for (const int64_t bytes : options.bytes) {
            const Case problem(bytes, communicator.size());
            const int at_once = times_at_once(bytes);
            const std::vector<Algorithm> algorithms = wanted(kind, options.algorithms);
            std::vector<std::function<void(int)>> runners;
            for (const Algorithm algorithm : algorithms)
                runners.push_back(carrier([&, kind, algorithm] { problem.run(communicator, kind, algorithm); }));
            const std::vector<double> seconds = median_times(communicator, runners, at_once, options);
            for (size_t i = 0; i < algorithms.size(); ++i) {
                times.push_back({kind, communicator.size(), communicator.one_node(), bytes, algorithms[i], seconds[i]});
                if (options.on_measured) options.on_measured(times.back());
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
