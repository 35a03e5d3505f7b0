// The simulator: runs the programs of all ranks against a clock, as an executor would run them on a device. One thread of each rank walks through the
// program; computations take its time, traffic is handed to its queue, and waits are waits. Ranks that do the same are simulated once. Where programs carry work into
// the next step, several follow each other, and the last counts.
#pragma once

#include <map>
#include <vector>

#include "base/trace.h"
#include "plan/cost.h"
#include "program/compile.h"

namespace convoy {

// Ranks that run one program, up to the names of the ranks they talk to.
struct RankClass {
    Program program;          // of the first of them
    std::vector<Rank> ranks;  // ascending
};
// Compiles one rank of each class. Error when the plan cannot be done.
std::vector<RankClass> compile_classes(const Graph& graph, const Plan& plan, const Target& target, const CompileOptions& options = {});
// Every rank by itself.
std::vector<RankClass> compile_all(const Graph& graph, const Plan& plan, const Target& target, const CompileOptions& options = {});

struct SimulateOptions {
    int threads = 0;                  // as CostOptions
    double noise = 0;                 // standard deviation of every computation's time, relative
    uint64_t seed = 1;                // of the noise
    std::map<Rank, double> slowdown;  // stragglers: 1.5 computes half as long again
    // Keep every event of the first rank of each class, of a step by itself, which carries nothing: measured timelines are of such.
    bool timeline = false;
};

struct ClassResult {
    std::vector<Rank> ranks;
    double seconds = 0;  // until its last instruction is over, or the next step may begin; its own step where several follow each other
    double compute_seconds = 0;  // at work
    double waiting_seconds = 0;  // for traffic
    double traffic_seconds = 0;  // of all queues, hidden or not
    int64_t arena_bytes = 0, state_bytes = 0;
    int64_t activation_sent = 0, gradient_sent = 0;  // bytes
};

struct Simulation {
    int ranks = 0;
    double step_seconds = 0;
    std::vector<ClassResult> classes;
    std::vector<TraceEvent> timeline;
    double joules = 0;          // of a step; 0: a power is not known
    double error = 0;           // relative, of the computations, weighted by their time
    double roofline_share = 0;  // part of the computing time that nothing was measured for
    // The class that finishes last.
    const ClassResult& slowest() const;
    int64_t most_memory() const;
};

Simulation simulate(const std::vector<RankClass>& classes, const Machine& machine, const SimulateOptions& options = {});

}  // namespace convoy
