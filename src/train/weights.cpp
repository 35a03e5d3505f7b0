#include "train/weights.h"

#include "base/error.h"
#include "base/log.h"
#include "train/checkpoint.h"
#include "train/state_file.h"

namespace convoy {

namespace {

namespace fs = std::filesystem;

// The checkpoint directory that `path` stands for, or nothing when it is a file.
std::optional<fs::path> checkpoint_of(const fs::path& path) {
    require(fs::exists(path), "weights {}: there is no such file or directory", path.string());
    if (!fs::is_directory(path)) return std::nullopt;
    if (fs::exists(path / "checkpoint.json") || fs::exists(path / "state.safetensors")) return path;
    const auto newest = CheckpointStore(path).latest([](const std::string& text) { warn("{}", text); });
    require(newest.has_value(),
            "weights {}: expected a safetensors file, or the directory of a checkpoint or a run; found a directory without checkpoints",
            path.string());
    return newest;
}

}  // namespace

fs::path weights_file(const fs::path& path) {
    const auto checkpoint = checkpoint_of(path);
    if (!checkpoint) return path;
    read_checkpoint(*checkpoint);
    return *checkpoint / "state.safetensors";
}

void load_weights(const fs::path& path, State& state, const LoadOptions& options) {
    const fs::path file = weights_file(path);
    load_state_file(file, file.string(), StateScope::Model, state, options);
}

std::optional<TrainConfig> config_of_weights(const fs::path& path) {
    const auto checkpoint = checkpoint_of(path);
    if (!checkpoint) return std::nullopt;
    return read_checkpoint(*checkpoint, false).config;
}

}  // namespace convoy
