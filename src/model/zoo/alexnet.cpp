// AlexNet in its one-tower form ("One weird trick for parallelizing convolutional neural networks", 2014): no local response norm, no
// groups.
#include "model/zoo/families.h"

namespace convoy {

Model alexnet(const ZooEntry& entry, const ModelOptions& options) {
    Builder b = begin_model(options);
    ValueId x = b.graph().input("input");
    const PoolSpec pool{.kernel = {3, 3}, .stride = {2, 2}};

    x = b.relu("features.1", b.conv("features.0", x, {.filters = 64, .kernel = {11, 11}, .stride = {4, 4}, .pad = {2, 2}}));
    x = b.max_pool("features.2", x, pool);
    x = b.relu("features.4", b.conv("features.3", x, {.filters = 192, .kernel = {5, 5}, .pad = {2, 2}}));
    x = b.max_pool("features.5", x, pool);
    x = b.relu("features.7", b.conv("features.6", x, {.filters = 384, .kernel = {3, 3}, .pad = {1, 1}}));
    x = b.relu("features.9", b.conv("features.8", x, {.filters = 256, .kernel = {3, 3}, .pad = {1, 1}}));
    x = b.relu("features.11", b.conv("features.10", x, {.filters = 256, .kernel = {3, 3}, .pad = {1, 1}}));
    x = b.max_pool("features.12", x, pool);

    x = b.adaptive_pool("avgpool", x, {6, 6});
    x = b.flatten("flatten", x);
    x = b.dropout("classifier.0", x, 0.5);
    x = b.relu("classifier.2", b.linear("classifier.1", x, {.outputs = 4096}));
    x = b.dropout("classifier.3", x, 0.5);
    x = b.relu("classifier.5", b.linear("classifier.4", x, {.outputs = 4096}));
    x = b.linear("classifier.6", x, {.outputs = options.classes});
    return finish_model(b, entry, options, x);
}

}  // namespace convoy
