// LeNet-5 as it is trained today: ReLU and max pooling, for 28x28 digits. 61,706 parameters.
#include "model/zoo/families.h"

namespace convoy {

Model lenet5(const ZooEntry& entry, const ModelOptions& options) {
    Builder b = begin_model(options);
    ValueId x = b.graph().input("input");

    x = b.conv("conv1", x, {.filters = 6, .kernel = {5, 5}, .pad = {2, 2}});
    x = b.relu("relu1", x);
    x = b.max_pool("pool1", x, {.kernel = {2, 2}});
    x = b.conv("conv2", x, {.filters = 16, .kernel = {5, 5}});
    x = b.relu("relu2", x);
    x = b.max_pool("pool2", x, {.kernel = {2, 2}});

    x = b.flatten("flatten", x);
    x = b.relu("relu3", b.linear("fc1", x, {.outputs = 120}));
    x = b.relu("relu4", b.linear("fc2", x, {.outputs = 84}));
    x = b.linear("fc3", x, {.outputs = options.classes});
    return finish_model(b, entry, options, x);
}

}  // namespace convoy
