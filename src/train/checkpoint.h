// Checkpoints: RUN/checkpoints/step-00001234/ with state.safetensors (every state tensor, global) and checkpoint.json (where the run stands).
//
// A checkpoint is written into a directory with a temporary name, made durable, and renamed into place; one that is no longer kept is renamed away
// before it is removed. So whatever moment the process is killed at, a directory under a checkpoint's name is whole. checkpoint.json holds the size
// and a checksum of state.safetensors, so damage from outside is seen, and the checkpoint before it is used.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "data/safetensors.h"
#include "exec/state.h"
#include "train/config.h"
#include "train/scores.h"

namespace convoy {

// A number that must be finite is not: the loss of a step, or a tensor of a checkpoint that was to be written. The last checkpoint is intact.
class NonFiniteError : public Error {
  public:
    using Error::Error;
};

// Sums over samples, from which means are made. Kept as sums so that a resumed epoch gives the same means, bit for bit.
struct MetricSums {
    double loss = 0;     // of each batch's mean loss times its samples
    double correct = 0;  // targets predicted right
    int64_t samples = 0;

    bool operator==(const MetricSums&) const = default;
};

// What the last finished epoch gave. Accuracies are absent for a regression, test values where nothing was validated.
struct EpochOutcome {
    double train_loss = 0;
    std::optional<double> train_accuracy, test_loss, test_accuracy;
    Scores test_scores;
    bool operator==(const EpochOutcome&) const = default;
};

// Where a run stands between two steps. Random numbers are functions of the seed and the step, so these two are their whole state.
struct Progress {
    int64_t step = 0;      // steps done
    int64_t epoch = 0;     // epochs finished, validation included
    int64_t batch = 0;     // batches of the current epoch done; all of them: its validation is still to be done
    int64_t samples = 0;   // seen in all
    MetricSums in_epoch;   // of the current epoch
    MetricSums in_window;  // since the last line of step metrics
    std::optional<EpochOutcome> last;
    std::optional<double> best_accuracy;
    bool operator==(const Progress&) const = default;
};

struct Checkpoint {
    TrainConfig config;         // with input and classes filled in
    int64_t train_samples = 0;  // of the dataset that the position refers to
    Progress progress;
};

// What checkpoint.json says. Error, naming the directory, when it is missing, damaged, of another format version, or when the size of
// state.safetensors is not what it says. With `verify` also when the checksum is not.
Checkpoint read_checkpoint(const std::filesystem::path& directory, bool verify = true);

// Puts the tensors of a checkpoint into the state, optimizer slots included. Error naming the tensors that are missing, unexpected or of another
// shape, when it is a checkpoint of another model; the state is untouched then.
void load_state(const std::filesystem::path& directory, State& state);

// Every tensor of the state as a whole. With a link all ranks must ask at the same time; only where `keep` is set the tensors are kept. NonFiniteError when
// one is not finite.
std::vector<NamedTensor> snapshot(const State& state, bool keep = true);

// The checkpoints of a run.
class CheckpointStore {
  public:
    // `keep` newest ones are kept; at least 1. Creates nothing.
    explicit CheckpointStore(const std::filesystem::path& run_dir, int keep = 3);

    const std::filesystem::path& directory() const { return directory_; }
    // Those under a checkpoint's name, newest first; whole or not.
    std::vector<std::filesystem::path> list() const;

    // The newest checkpoint that is whole, verified; each damaged one that is passed over is described to `warn`, with the one used instead. Nothing
    // when there is none at all; Error when there are some and all are damaged.
    std::optional<std::filesystem::path> latest(const std::function<void(const std::string&)>& warn) const;

    // Writes the state as the checkpoint of `checkpoint.progress.step`, removes what is no longer kept (checkpoints of later steps too: they were
    // damaged, or the run would not be here) and what killed writes left behind. Returns its path. Error when it cannot be written (full disk): the partial
    // one is removed then and the older ones stay.
    std::filesystem::path write(const Checkpoint& checkpoint, const std::vector<NamedTensor>& tensors);
    // The same with a snapshot of the state.
    std::filesystem::path write(const Checkpoint& checkpoint, const State& state) { return write(checkpoint, snapshot(state)); }

  private:
    void remove(const std::filesystem::path& path);
    void clean();

    std::filesystem::path directory_;
    int keep_;
};

// "step-00001234"
std::string checkpoint_name(int64_t step);

}  // namespace convoy
