// What a training run tells whoever watches it: the progress bar of the command line, or a test.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "base/trace.h"
#include "data/prefetch.h"
#include "program/plan_spec.h"
#include "train/config.h"
#include "train/evaluate.h"

namespace convoy {

struct TrainStart {
    TrainConfig config;  // with input and classes filled in
    int64_t train_samples = 0, test_samples = 0;
    int64_t steps_per_epoch = 0, total_steps = 0;
    int64_t parameters = 0;                         // learned numbers
    int64_t arena_bytes = 0, state_bytes = 0;       // for steps; of the state; of this rank
    int64_t first_step = 0;                         // steps done before: 0, or where a resumed run goes on
    std::vector<Unfollowed> unfollowed;             // layers that could not follow the plan
    std::string data;                               // what was found: the kind, the classes, a sample
    std::string train_transforms, test_transforms;  // what is done to samples; "" for nothing
    int data_workers = 1;                           // threads that read ahead
};

struct StepReport {
    int64_t step = 0, total_steps = 0;     // steps done, this one included
    int64_t epoch = 0, epochs = 0;         // the current epoch, from 1
    int64_t batch = 0, batches = 0;        // batches of the epoch done
    double loss = 0;                       // of this step
    double epoch_loss = 0;                 // mean over the epoch so far
    std::optional<double> epoch_accuracy;  // the same
    double lr = 0;
    double samples_per_s = 0;  // lately, validation and checkpoints aside
    double data_wait_s = 0;    // waited for data in this process
    double eta_s = 0;          // to the end of the run at this rate, validation aside
};

struct EpochReport {
    int64_t epoch = 0, epochs = 0;  // from 1
    int64_t step = 0;
    double train_loss = 0;
    std::optional<double> train_accuracy;
    std::optional<EvalResult> validation;
    double lr = 0;
    double samples_per_s = 0, data_wait_s = 0, seconds = 0;  // of that part of the epoch that this process trained
    int64_t read_bytes = 0, read_bytes_of_all = 0;           // likewise, taken from where the data are kept: by this rank; by all
    int64_t skipped = 0;                                     // pictures that could not be read so far, by all ranks
    std::optional<double> joules, watts;                     // of all GPUs, in `seconds`
};

// All are called from the thread that trains, between steps; of many ranks each has its own. Each does nothing unless it is overridden.
class TrainObserver {
  public:
    virtual ~TrainObserver() = default;
    virtual void on_start(const TrainStart&) {}
    virtual void on_step(const StepReport&) {}
    virtual void on_epoch(const EpochReport&) {}
    virtual void on_checkpoint(const std::filesystem::path&, int64_t /*step*/) {}
    virtual void on_metrics(const Json& /*line*/) {}  // as they go to the metrics file
    // With TrainOptions::tensors: the first batch of this process, as this rank reads it; and every parameter after an epoch, with the gradient of the
    // last step, which a frozen one has not.
    virtual void on_examples(const Batch&, const DatasetInfo&) {}
    virtual void on_parameter(int64_t /*step*/, const std::string& /*name*/, const Tensor& /*value*/, const Tensor* /*gradient*/) {}
    virtual void on_trace(const Trace&) {}          // of all ranks, when TrainOptions::trace_steps are done
    virtual void on_message(const std::string&) {}  // a warning, or something a person should know
};

}  // namespace convoy
