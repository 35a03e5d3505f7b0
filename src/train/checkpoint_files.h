// The files of a checkpoint. Internal to this folder.
#pragma once

#include "train/checkpoint.h"

namespace convoy {

inline constexpr const char* kStateFile = "state.safetensors";
inline constexpr const char* kCheckpointFile = "checkpoint.json";

// Writes checkpoint.json beside the state.safetensors that is already in `directory`.
void write_checkpoint_json(const std::filesystem::path& directory, const Checkpoint& checkpoint);

}  // namespace convoy
