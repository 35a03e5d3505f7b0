// The training loop: batches in, steps, metrics, validation, checkpoints; and going on from a checkpoint bit for bit as if nothing had happened.
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "program/costs.h"
#include "train/checkpoint.h"
#include "train/config.h"
#include "train/observer.h"

namespace convoy {

struct TrainOptions {
    bool resume = false;                      // go on in the configuration's run directory
    const std::atomic<bool>* stop = nullptr;  // when set, on any rank, the run ends after the current step, with a checkpoint
    bool tensors = false;                     // also shows examples, parameters and gradients to the observer; the same on all ranks
    int64_t trace_steps = 0;  // so many steps, from the third of this process on where there are enough, are traced; the same on all ranks
    Link* link = nullptr;     // to the other ranks, when the configuration has several
    std::shared_ptr<const Costs> costs;  // what programs are compiled with, the same on all ranks; none: the backend's estimates
};

struct TrainResult {
    double train_loss = 0;                           // mean over the last finished epoch, or over the unfinished first one
    std::optional<double> train_accuracy;            // the same
    std::optional<double> test_loss, test_accuracy;  // after the last finished epoch
    Scores test_scores;                              // the same
    std::optional<double> best_accuracy;             // of all epochs, on the test split
    double samples_per_s = 0;                        // while training in this process, validation and checkpoints aside
    double seconds = 0;                              // this process, all in all
    double data_wait_s = 0;                          // of them, waiting for data
    int64_t read_bytes = 0;                          // training data, taken from where they are kept by all ranks
    int64_t skipped = 0;                             // pictures that could not be read, by all ranks
    int64_t steps = 0, epochs = 0;                   // done in all, resumed ones included
    bool stopped_early = false;                      // by the stop flag
    std::optional<double> joules, watts;             // of all GPUs while training in this process
    std::string energy_source;                       // where those come from, or why there are none
};

// Trains as configured. Of many ranks all call it with the same configuration; all read, only the first writes, and all get the result. Not resuming: Error when the run directory already holds checkpoints. Resuming: Error when it holds no run or one that does
// not agree (require_resumable); without a checkpoint the run begins anew. Errors that a caller can cause are found before the first step:
// unknown names, shapes that do not fit, a run directory that cannot be written. Errors of later: NonFiniteError; a full disk; a damaged dataset.
TrainResult train(const TrainConfig& config, const TrainOptions& options, TrainObserver& observer);

}  // namespace convoy
