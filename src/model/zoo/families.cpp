#include "model/zoo/families.h"

namespace convoy {

Builder begin_model(const ModelOptions& options) {
    Builder b(options.mode, options.dropout);
    b.input(join({options.batch}, options.input));
    return b;
}

Model finish_model(Builder& b, const ZooEntry& entry, const ModelOptions& options, ValueId prediction, LossKind loss) {
    b.graph().add_output("output", prediction);
    return {.name = entry.name, .graph = b.take(), .losses = {{.output = "output", .kind = loss}}, .classes = options.classes};
}

}  // namespace convoy
