// The backward pass and the update, written out as graphs.
#pragma once

#include <string>
#include <vector>

#include "model/model.h"

namespace convoy {

struct Optimizer {
    UpdateRule rule;
    double clip_norm = 0;  // limit on the norm of the whole gradient; 0: none
    bool operator==(const Optimizer&) const = default;
};

struct TrainingOptions {
    int micro_batches = 1;            // the model's batch is that of one micro-batch
    std::vector<std::string> frozen;  // parameters that are not learned
    bool gradients = false;           // also as outputs, "grad:<parameter>"
};

// Names of a training graph: inputs "input", "target" (with "@m" for micro-batch m > 0) and "hyper"; outputs "loss" [1] and, for
// classifiers, "correct" [1], both over all micro-batches.
std::string micro_name(const std::string& name, int micro_batch);

// Forward, backward and update of one step.
Graph training_graph(const Model& model, const Optimizer& optimizer, const TrainingOptions& options = {});

// Forward with loss and number of correct predictions, for a batch of which the loss is the mean. Outputs "loss", "correct", and the model's own.
Graph evaluation_graph(const Model& model);

// Forward and backward without an update: outputs "loss" and "grad:<parameter>" for every parameter; with `input_gradient` also "grad:input".
// A model in training mode stores its new running statistics all the same, so that its state is that of a training step.
Graph gradient_graph(const Model& model, bool input_gradient = false);

// The gradient of `seed` (the gradient of some loss with respect to `output`) with respect to every value of `wrt`; kNone for a value
// that `output` does not depend on. For tests of single ops and for tools.
std::vector<ValueId> backward(Graph& graph, const std::vector<std::pair<ValueId, ValueId>>& seeds, const std::vector<ValueId>& wrt);

}  // namespace convoy
