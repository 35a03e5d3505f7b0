// Model and data fitted to each other: what the configuration leaves open is filled in, and what does not fit is refused by name.
#pragma once

#include <memory>

#include "data/dataset.h"
#include "exec/session.h"
#include "model/model.h"
#include "train/config.h"
#include "train/plan_choice.h"

namespace convoy {

struct Task {
    TrainConfig config;                    // with input and classes filled in
    std::unique_ptr<Dataset> train, test;  // null when not asked for

    const Dataset& split(Split which) const { return which == Split::Train ? *train : *test; }
};

enum class Splits : uint8_t { Both, TrainOnly, TestOnly };

// Opens the data. Synthetic data take their shape from the model; other data give theirs to it. Error when the dataset's samples or targets are not what
// the model, as configured, takes.
Task open_task(const TrainConfig& config, Splits splits = Splits::Both);

// How many threads read ahead for each rank.
int data_workers(const TrainConfig& config);

// What a session of this configuration is made with: backend, type, seed, and the plan for its ranks, made for the training step of a whole batch. The
// link leads to the other ranks, when there are several; Bug when they are not as many. What could not follow goes to `unfollowed`.
SessionOptions session_options(const TrainConfig& config, Link* link, std::vector<Unfollowed>* unfollowed = nullptr);

// The training step of `samples` samples, in as many micro-batches as the configuration says, where they divide them.
// With `gradients` it gives them as outputs. Error when a pattern of frozen parameters matches none.
Graph training_graph_of(const TrainConfig& config, int64_t samples, bool gradients = false);

// The model of a configuration with input and classes filled in, in `mode`, for `batch` samples. In training its classes' targets are smoothed.
Model make_model(const TrainConfig& config, Mode mode, int64_t batch);

}  // namespace convoy
