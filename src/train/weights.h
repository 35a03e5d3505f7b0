// Weights from files into a state: a safetensors file, a checkpoint directory, or a run directory (its newest checkpoint).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "exec/state.h"
#include "train/config.h"

namespace convoy {

// The safetensors file that `path` stands for. Error when it is none of the three. Damaged checkpoints of a run are passed over with a warning in the
// log.
std::filesystem::path weights_file(const std::filesystem::path& path);

// What of a file and of a state need not agree.
struct LoadOptions {
    std::vector<std::string>
        spare;  // tensors of the file whose names begin so are passed over (layers that the model has only in training mode)
    std::vector<std::string> skip;  // patterns with *: tensors with such names are left alone, in the file and in the state
};

// Parameters and buffers of the state from that file; optimizer slots are left alone, on both sides. Error naming the tensors that are missing,
// unexpected or of another shape, or a pattern that no tensor has; the state is untouched then.
void load_weights(const std::filesystem::path& path, State& state, const LoadOptions& options = {});

// The configuration that a checkpoint or run directory was trained with; nothing for a single file.
std::optional<TrainConfig> config_of_weights(const std::filesystem::path& path);

}  // namespace convoy
