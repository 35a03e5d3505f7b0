// A model on arrays from files: what `run` and `grad` share.
#pragma once

#include <filesystem>

#include "app/options.h"
#include "exec/executor.h"
#include "tensor/tensor.h"

namespace convoy {

// The inputs in an .npy file, and the model's options with the batch and the shape that the file has. Error when the file's dims are not a batch of
// the model's inputs, or when --input or --batch say something else.
struct FileInput {
    Tensor tensor;
    ModelOptions options;
};
FileInput read_input(const std::filesystem::path& path, const ModelSource& entry, const CommonOptions& common, Mode mode);

// The targets in an .npy file for the input "target" of a program: labels 0..classes-1 as integers where the program wants indices, numbers
// elsewhere. Error names the file, and the first bad label with its place.
Tensor read_target(const std::filesystem::path& path, const Slot& slot, int64_t classes);

}  // namespace convoy
