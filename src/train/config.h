// Everything that decides a training run, as a plain value. Written to the run directory, so that a run can be repeated and resumed.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "model/autodiff.h"
#include "program/limits.h"
#include "tensor/dtype.h"
#include "train/schedule.h"

namespace convoy {

struct DataConfig {
    std::string name = "mnist";                            // "mnist", "synthetic" or a path, as open_dataset takes it
    std::string path;                                      // where the files of a named dataset are; empty: the usual places
    int64_t most_train = 0, most_test = 0;                 // at most so many samples of a split, the first ones; 0: all
    int64_t synthetic_train = 1024, synthetic_test = 256;  // of "synthetic": samples
    double synthetic_signal = 1;                           // of "synthetic": the pattern's strength; the noise has 1
    std::string augment, normalize;                        // as parse_augment and parse_normalize take them; empty: the kind's usual ones
    int64_t resize = 0;                                    // pictures in files: the short side before a crop; 0: 256 for 224
    bool strict = false;                                   // pictures that cannot be read end the run
    int workers = 0;  // threads that read ahead; 0: as many as `threads` where pictures are decoded, else 1
    bool operator==(const DataConfig&) const = default;
};

struct TrainConfig {
    std::string model = "lenet5";  // a name, or the path of a file, as open_model takes it
    Shape input;                   // without N; empty: the dataset's, or for synthetic data the model's own
    int64_t classes = 0;           // 0: the dataset's, or for synthetic data the model's own
    DataConfig data;

    std::string init;  // weights to begin with, as load_weights takes them; empty: the first values that the seed gives
    std::vector<std::string> skip, freeze;  // parameters, by patterns with *: not taken from init; not learned

    int64_t epochs = 1;
    int64_t batch = 64;     // samples of one step
    int micro_batches = 1;  // parts in which a step is computed; must divide the batch
    Optimizer optimizer{.rule = {.rule = Rule::Momentum}};
    Schedule schedule;           // with the learning rate
    double label_smoothing = 0;  // of training; validation never smooths
    bool dropout = true;         // false: the model's dropout layers are left out
    bool validate = true;        // on the test split, after each epoch
    uint64_t seed = 1;

    DType dtype = DType::f32;
    std::string backend = "reference";
    int threads = 1;
    int device = 0;
    Limits limits;      // what the programs may use of the backend
    bool tune = false;  // kernels are measured before the first step, and the fastest used
    int ranks = 1;      // that share the work; `threads` is of each
    std::string plan;   // how they share it, as plan_choice takes it; empty: by samples

    std::string run_dir;           // metrics, configuration and checkpoints; empty: nothing is written
    int64_t checkpoint_every = 0;  // steps; 0: only after each epoch (and when stopped)
    int keep = 3;                  // checkpoints kept, the newest ones
    int64_t log_every = 50;        // steps between two lines of metrics; 0: only after each epoch

    bool operator==(const TrainConfig&) const = default;
};

// Error, naming the field and what was found, when a setting makes no sense by itself. What depends on the model or the data is found later.
void require_valid(const TrainConfig& config);

Json to_json(const TrainConfig& config);
// Fields that are missing keep their defaults. Error names the field, what was expected and what was found; an unknown field is an error too.
// `where` (a file) begins the message.
TrainConfig config_from_json(const Json& json, const std::string& where = "configuration");

// The same for the files of a run: a model that is a file is the run's own copy, model.onnx in its directory, so that a run stays whole when the file it
// was begun with changes, and when its directory is moved.
Json run_json(const TrainConfig& config);
TrainConfig with_model_of_run(TrainConfig config, const std::filesystem::path& run_dir);

// config.json of a run directory, and the model's file beside it. Reading: Error when there is none or it is damaged.
TrainConfig read_config(const std::filesystem::path& run_dir);
void write_config(const std::filesystem::path& run_dir, const TrainConfig& config);

// Error, naming the first field with both values, unless a run of `old` may go on as `now`: what decides the numbers must agree (model, input,
// classes, data, batch, micro_batches, frozen parameters, optimizer, dtype, seed, dropout); the rest (epochs, schedule, threads, backend, ranks, plan, ...) may change. Both with input
// and classes filled in.
void require_resumable(const TrainConfig& old, const TrainConfig& now);

// The names of update rules, for command lines: "sgd", "momentum", ... Error names the known ones, with a suggestion.
Rule rule_named(std::string_view name);

}  // namespace convoy
