// Model and data fitted to each other: what the configuration leaves open is filled in, and what does not fit is refused by name.
#pragma once

#include <memory>

#include "data/dataset.h"
#include "train/config.h"

namespace convoy {

struct Task {
    TrainConfig config;  // with input and classes filled in
    std::unique_ptr<Dataset> train, test;

    const Dataset& split(Split which) const { return which == Split::Train ? *train : *test; }
};

// Opens both splits. Synthetic data take their shape from the model; other data give theirs to it. Error when the dataset's samples or labels are not
// what the model, as configured, takes.
Task open_task(const TrainConfig& config);

// The configuration with input and classes filled in, and the model in `mode` for `batch` samples.
Model make_model(const TrainConfig& config, Mode mode, int64_t batch);

}  // namespace convoy
