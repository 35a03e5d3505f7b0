// From an ONNX file to a graph. Every node becomes ops of ours, or is computed here and now when all it reads is known (shapes, constants), or is refused
// with its op type and name. What the file stores as real numbers and a node reads becomes state: parameters, or buffers for running statistics.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "model/graph.h"
#include "onnx/file.h"

namespace convoy::onnx {

// Batch norm and dropout: as each node says, or all for training, or all for evaluation.
enum class NodeMode : uint8_t { AsWritten, Training, Evaluation };

struct ImportOptions {
    NodeMode mode = NodeMode::AsWritten;
    bool dropout = true;                  // false: training without its dropout nodes
    std::string path;                     // of the file, from which states take their first values; empty: they are copied into the graph
    std::map<std::string, Shape> shapes;  // of inputs, instead of what the file says
    std::map<std::string, Tensor> constants;   // inputs that are known: a shape to take, a limit
    std::map<std::string, std::string> names;  // of inputs in the graph, where they are to differ
};

// An op needs the numbers of a value (a shape, axes) that is an input of the graph.
class NeedsConstant : public Error {
  public:
    NeedsConstant(const std::string& text, std::string name) : Error(text), input(std::move(name)) {}
    std::string input;
};

struct ImportedOutput {
    std::string name;
    ValueId value = kNone;
    Tensor known;  // where value is kNone: f64 or i64
};
struct Imported {
    Graph graph;  // without outputs
    std::vector<ImportedOutput> outputs;
};

// `bytes` are those that `file` was parsed from.
Imported import_graph(const ModelProto& file, std::string_view bytes, const ImportOptions& options);

}  // namespace convoy::onnx
