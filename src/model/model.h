// A model: a forward graph, in training or evaluation mode, with what its outputs are trained on. Made by the zoo (or an importer) for one
// batch size; a last, smaller batch is a model of its own on the same state names.
#pragma once

#include <string>
#include <vector>

#include "model/graph.h"

namespace convoy {

enum class Mode : uint8_t { Training, Evaluation };

enum class LossKind : uint8_t { CrossEntropy, SquaredError, AbsoluteError };

// One term of the loss: an output of the graph against a target input. The loss is the weighted sum of all terms.
struct LossTerm {
    std::string output;             // name of a graph output
    std::string target = "target";  // name of the target input; terms may share one
    LossKind kind = LossKind::CrossEntropy;
    double weight = 1;
    double label_smoothing = 0;
    std::vector<double> class_weights;  // empty: all ones
    bool operator==(const LossTerm&) const = default;
};

struct Model {
    std::string name;
    Graph graph;                   // input "input", outputs as the losses name them; the first output is the prediction
    std::vector<LossTerm> losses;  // at least one; the first is on the prediction
    int64_t classes = 0;           // classes of a classifier (per sample or per voxel), outputs of a regression
};

// What a caller may choose about a model of the zoo. Zero or empty means the model's own default.
struct ModelOptions {
    int64_t batch = 1;
    Shape input;  // without N, e.g. 3x224x224
    int64_t classes = 0;
    Mode mode = Mode::Training;
    bool dropout = true;  // false: a training mode without its dropout layers
    bool operator==(const ModelOptions&) const = default;
};

}  // namespace convoy
