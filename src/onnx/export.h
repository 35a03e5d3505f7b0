// From a graph to an ONNX file: a network in evaluation mode, with its weights inside, for other tools to run and for us to read again.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "model/model.h"
#include "tensor/tensor.h"

namespace convoy::onnx {

struct ExportOptions {
    DType type = DType::f32;  // of weights and activations: f32 or f64
    std::string producer = "convoy";
};
struct ExportReport {
    int64_t nodes = 0, initializers = 0, bytes = 0, opset = 0;
    bool any_batch = false;  // the file takes batches of every size
};

// `weights` gives the tensor of a state; it is asked once for each. The model must be in evaluation mode. Error names the layer that ONNX has no op for.
ExportReport export_model(const std::filesystem::path& path, const Model& model, const std::function<Tensor(const StateSpec&)>& weights,
                          const ExportOptions& options = {});

}  // namespace convoy::onnx
