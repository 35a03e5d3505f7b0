// The tuner: measures every candidate that could win for every problem of a step, on all ranks' shapes, compiles with what it found, and makes sure that the
// result is faster as a whole. What was measured is kept in a cache, so the next time nothing is.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exec/session.h"
#include "tune/cost_cache.h"
#include "tune/measure.h"

namespace convoy {

struct TuneOptions {
    SessionOptions session;          // backend, type, threads, limits, plan, and the link to its other ranks
    std::optional<CostCache> cache;  // none: measure everything, keep nothing
    MeasureOptions measure = {};
    double hopeless_estimate = 8;  // a candidate whose estimate is this many times the best one's is not measured
    double race_seconds = 6;       // for running the tuned step against the untuned one, about
    std::function<void(const std::string&)> progress = nullptr;  // is told on the first rank, now and then
};

// What one kind of problem is computed by, tuned and not. Of the first rank's program.
struct TunedChoice {
    std::string layer, what;                        // the first of its layers, "forward: conv 3x3 pad 1 + bias + relu"
    std::string problem;                            // its key
    int count = 0;                                  // instructions of the step
    std::string untuned, tuned;                     // algorithms
    double untuned_seconds = 0, tuned_seconds = 0;  // measured alone, of one
};

struct Tuning {
    std::shared_ptr<const CostTable> table;       // the same on all ranks
    std::shared_ptr<const MeasuredCosts> costs;   // what to compile with; none when the untuned program is as fast
    std::optional<Verdict> verdict;               // none when the two programs are the same
    int measured = 0, known = 0;                  // kernels and copies: measured now, known before
    double seconds = 0;                           // that it took
    std::vector<TunedChoice> choices;             // those that were measured, the largest gain first
    double untuned_copies = 0, tuned_copies = 0;  // seconds of all copies between layouts
};

// Tunes a step. All ranks of the plan call it at the same time; the first measures, the others wait, and all have the same result.
Tuning tune(const Graph& graph, const TuneOptions& options);

// The least seconds in which any measured candidate computes the problem; nothing when none was measured.
std::optional<double> best_seconds(const CostTable& table, const Problem& problem);

}  // namespace convoy
