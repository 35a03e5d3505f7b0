// Times the algorithms of the collectives through the very calls that training makes, and makes a table of the winners.
#pragma once

#include <functional>
#include <vector>

#include "comm/collective_table.h"
#include "comm/communicator.h"

namespace convoy {

struct CollectiveTime {
    Traffic kind = Traffic::AllReduce;
    int group_size = 0;
    bool one_node = true;
    int64_t bytes = 0;
    Algorithm algorithm = Algorithm::Library;
    double seconds = 0;  // median over repetitions of the slowest rank's time
};

// Prepares `work` to be run some times (at most so many), one after the other; what it returns does so and comes back when all are over. A caller whose traffic runs on
// a thread of its own measures through that thread.
constexpr int kMostAtOnce = 16;
using Carrier = std::function<std::function<void(int times)>(const std::function<void()>& work)>;

struct CollectiveMeasureOptions {
    std::vector<Traffic> kinds = {Traffic::AllReduce, Traffic::ReduceScatter, Traffic::AllGather};
    std::vector<int64_t> bytes = {4 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20};  // of the whole vector, in f32
    std::vector<Algorithm> algorithms;  // empty: all that the kind has; Auto is what training takes
    double seconds_each = 0.1;          // spent on one algorithm and size
    int most_repetitions = 1000;
    Carrier carrier;                                         // empty: on the calling thread
    std::function<void(const CollectiveTime&)> on_measured;  // as each is known
};

// Collective over the communicator; every rank gets the same list.
std::vector<CollectiveTime> measure(Communicator& communicator, const CollectiveMeasureOptions& options = {});

// Puts the fastest of each (kind, group size, nodes, bytes) into a table; of those within 3 % of it the first in the order of Algorithm.
CollectiveTable fastest(const std::vector<CollectiveTime>& times);

}  // namespace convoy
