// Loss, accuracy and other scores of a state on a dataset.
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>

#include "data/dataset.h"
#include "exec/session.h"
#include "train/config.h"
#include "train/feed.h"
#include "train/scores.h"

namespace convoy {

struct EvalResult {
    double loss = 0;                 // mean over samples
    std::optional<double> accuracy;  // right predictions over all targets; none for a regression
    Scores scores;                   // further ones, as the targets allow
    int64_t samples = 0;
    double seconds = 0, samples_per_s = 0;
    bool operator==(const EvalResult&) const = default;
};

// The programs that evaluate a model on one dataset, on the state of a session. Made once, run after each epoch.
class Evaluator {
  public:
    // `config` has input and classes filled in. Programs take the samples of one micro-batch. Session and dataset must outlive it.
    Evaluator(Session& session, const Dataset& dataset, const TrainConfig& config);

    // In the dataset's order. Nothing when `stop` was set meanwhile, on any rank. NonFiniteError when a loss was not finite.
    std::optional<EvalResult> run(const std::atomic<bool>* stop = nullptr);

  private:
    Session& session_;
    const Dataset& dataset_;
    BatchOrder order_;
    int workers_;
    std::string output_;  // the model's prediction
    Shape output_shape_;  // of one sample
    std::unique_ptr<BatchProgram> full_, last_;
};

struct EvalOptions {
    Split split = Split::Test;
    const std::atomic<bool>* stop = nullptr;
    Link* link = nullptr;  // to the other ranks, when the configuration has several; all of them evaluate together
};

// Evaluates weights (a safetensors file, a checkpoint or run directory; empty: the first values that the seed gives) on a split of the
// configuration's data. Error when they are not of that model. A result of no samples when stopped.
EvalResult evaluate(const TrainConfig& config, const std::filesystem::path& weights, const EvalOptions& options = {});

}  // namespace convoy
