// Times kernels alone, as they would run in a step: prepared once, on data of ordinary size, with caches that hold other things. A machine with other work on
// it makes some runs slower and none faster, so the lower quartile of the runs counts, and runs of rivals take turns.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "program/costs.h"

namespace convoy {

struct MeasureOptions {
    bool cold = true;      // the caches hold other things before each run; never on a device
    int rounds = 7;        // runs that count, at most
    double seconds = 0.3;  // no further round when the runs of a candidate have taken this long; at least one counts
    int threads = 1;       // that the backend computes with: their caches are emptied
    // A candidate whose best run is slower than the best candidate by this factor, after some rounds, takes part in no other.
    double hopeless = 1.25;
};

// A kernel's own time, or a copy's, in seconds.
double measure(Backend& backend, const Problem& problem, const Candidate& candidate, const MeasureOptions& options);
double measure_copy(Backend& backend, const CopyProblem& copy, const MeasureOptions& options);

// Empties caches by walking through other memory.
class CacheSweep {
  public:
    explicit CacheSweep(int threads);
    void run();

  private:
    int threads_;
    std::vector<float> memory_;
};

// Candidates of one problem against each other: they share inputs (one for each layout wanted), outputs and workspace.
class Contest {
  public:
    // The backend and the problem must outlive it. The candidates' layouts are settled.
    Contest(Backend& backend, const Problem& problem, const MeasureOptions& options);
    ~Contest();

    // Seconds of each candidate, in order. One that was left behind has the time of the rounds it took part in; one that
    // writes outside its memory has a time that no other has, and a line on standard error names it.
    std::vector<double> run(const std::vector<Candidate>& candidates);

  private:
    Operand input(size_t i, const Candidate& candidate);
    std::unique_ptr<Kernel> prepare(const Candidate& candidate, const std::vector<void*>& outputs, void* workspace);

    Backend& backend_;
    const Problem& problem_;
    MeasureOptions options_;
    std::map<std::string, std::unique_ptr<Memory>> inputs_;  // by number, layout and type
};

}  // namespace convoy
