// What a simulation knows of the programs before its clock starts: what every instruction costs, whom it waits for, and in which order a rank comes to them. Internal to
// this module.
#pragma once

#include <vector>

#include "plan/cost.h"
#include "plan/simulate.h"

namespace convoy {

// Of one class. An instruction of a later step has a number that is larger by as many as there are; at the end of a step stands kNone.
struct Script {
    const Program* program = nullptr;
    std::vector<int> walk;
    std::vector<int> staying;             // traffic that is over when its step is
    std::vector<double> seconds;          // of computations
    std::vector<TrafficCost> traffic;     // of traffic
    std::vector<std::vector<int>> peers;  // of traffic: the classes that must have arrived
};

struct Scripts {
    std::vector<Script> list;  // by class
    int64_t orders = 1;        // one more than the highest
    // Seconds of computations, how many of them are guessed from rooflines, and the error that is expected.
    double computed = 0, guessed = 0, error = 0;
};

// For so many steps that follow each other; what programs carry runs in the next one, as late as it may.
Scripts write_scripts(const std::vector<RankClass>& classes, const CostModel& costs, int steps);

// Of all classes together.
int count_ranks(const std::vector<RankClass>& classes);

}  // namespace convoy
