// Checks of every collective against the obvious sum, on any transport: the unit tests run them on threads, tests/comm under mpirun. For tests only.
#pragma once

#include <string>
#include <vector>

#include "comm/communicator.h"

namespace convoy::testing_comm {

struct Check {
    Traffic kind = Traffic::AllReduce;
    Algorithm algorithm = Algorithm::Library;
    DType dtype = DType::f32;
    ReduceOp op = ReduceOp::Sum;
    int64_t count = 0;  // elements of the whole vector
    uint64_t seed = 0;
};
std::string to_string(const Check& check);

// All collectives, algorithms and types at one size.
std::vector<Check> all_checks(int64_t count, uint64_t seed);

// Runs it on random data with uneven pieces (some empty), twice. Error when a result is not the sum (exactly for integers and for what is only moved; within
// the rounding of each addition otherwise), differs between ranks or between the two runs.
void run_check(Communicator& communicator, const Check& check);

// `bytes` random but fixed by the numbers.
std::vector<std::byte> noise(int64_t bytes, uint64_t seed);

}  // namespace convoy::testing_comm
