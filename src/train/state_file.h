// A safetensors file and a state: which tensors both must have, and loading all of them or none. Internal to this folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "exec/state.h"
#include "train/weights.h"

namespace convoy {

enum class StateScope : uint8_t {
    All,    // optimizer slots too
    Model,  // parameters and buffers; optimizer slots of the file are passed over
};

// Puts the tensors of the file into the state. Error, naming `what` and the tensors that are missing, unexpected or of another shape, unless the file has
// exactly those in scope, `options` aside; the state is untouched then.
void load_state_file(const std::filesystem::path& file, const std::string& what, StateScope scope, State& state,
                     const LoadOptions& options = {});

}  // namespace convoy
