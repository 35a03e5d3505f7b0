// SqueezeNet 1.1: "fire" modules squeeze to few channels by 1x1 and expand by 1x1 and 3x3 side by side. The classifier is a convolution.
#include "model/zoo/families.h"

namespace convoy {

namespace {

ConvSpec conv(int64_t filters, int64_t kernel, int64_t pad = 0) {
    return {.filters = filters, .kernel = {kernel, kernel}, .pad = {pad, pad}, .init = Init::HeUniform, .zero_bias = true};
}

ValueId fire(Builder& b, const std::string& name, ValueId x, int64_t squeeze, int64_t expand) {
    x = b.relu(name + ".squeeze_activation", b.conv(name + ".squeeze", x, conv(squeeze, 1)));
    const ValueId one = b.relu(name + ".expand1x1_activation", b.conv(name + ".expand1x1", x, conv(expand, 1)));
    const ValueId three = b.relu(name + ".expand3x3_activation", b.conv(name + ".expand3x3", x, conv(expand, 3, 1)));
    return b.concat(name + ".concat", {one, three});
}

}  // namespace

Model squeezenet(const ZooEntry& entry, const ModelOptions& options) {
    Builder b = begin_model(options);
    ValueId x = b.graph().input("input");
    const PoolSpec pool{.kernel = {3, 3}, .stride = {2, 2}, .ceil = true};

    ConvSpec stem = conv(64, 3);
    stem.stride = {2, 2};
    x = b.relu("features.1", b.conv("features.0", x, stem));
    x = b.max_pool("features.2", x, pool);
    x = fire(b, "features.3", x, 16, 64);
    x = fire(b, "features.4", x, 16, 64);
    x = b.max_pool("features.5", x, pool);
    x = fire(b, "features.6", x, 32, 128);
    x = fire(b, "features.7", x, 32, 128);
    x = b.max_pool("features.8", x, pool);
    x = fire(b, "features.9", x, 48, 192);
    x = fire(b, "features.10", x, 48, 192);
    x = fire(b, "features.11", x, 64, 256);
    x = fire(b, "features.12", x, 64, 256);

    x = b.dropout("classifier.0", x, 0.5);
    ConvSpec last = conv(options.classes, 1);
    last.init = Init::Normal001;
    x = b.relu("classifier.2", b.conv("classifier.1", x, last));
    x = b.adaptive_pool("classifier.3", x, {1, 1});
    x = b.flatten("flatten", x);
    return finish_model(b, entry, options, x);
}

}  // namespace convoy
