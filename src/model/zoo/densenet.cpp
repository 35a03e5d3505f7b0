// DenseNet-BC: every layer of a block sees all earlier outputs of the block. Growth 32, bottlenecks of 4 x 32, transitions that halve.
#include <array>

#include "model/zoo/families.h"

namespace convoy {

namespace {

constexpr int64_t kGrowth = 32, kBottleneck = 4 * kGrowth;

struct Member {
    std::string_view name;
    std::array<int, 4> layers;  // per block
};
constexpr std::array<Member, 3> kMembers{
    {{"densenet121", {6, 12, 24, 16}}, {"densenet169", {6, 12, 32, 32}}, {"densenet201", {6, 12, 48, 32}}}};

ConvSpec conv(int64_t filters, int64_t kernel) {
    const int64_t pad = kernel / 2;
    return {.filters = filters, .kernel = {kernel, kernel}, .pad = {pad, pad}, .bias = false, .init = Init::HeNormal};
}

// x[N,C,..] -> [N,C+kGrowth,..]: x and what the layer made of it.
ValueId dense_layer(Builder& b, const std::string& name, ValueId x) {
    ValueId y = b.relu(name + ".relu1", b.batch_norm(name + ".norm1", x));
    y = b.conv(name + ".conv1", y, conv(kBottleneck, 1));
    y = b.relu(name + ".relu2", b.batch_norm(name + ".norm2", y));
    y = b.conv(name + ".conv2", y, conv(kGrowth, 3));
    return b.concat(name + ".concat", {x, y});
}

ValueId transition(Builder& b, const std::string& name, ValueId x) {
    const int64_t channels = b.shape(x)[1];
    x = b.relu(name + ".relu", b.batch_norm(name + ".norm", x));
    x = b.conv(name + ".conv", x, conv(channels / 2, 1));
    return b.average_pool(name + ".pool", x, {.kernel = {2, 2}});
}

}  // namespace

Model densenet(const ZooEntry& entry, const ModelOptions& options) {
    const Member& member = member_of(kMembers, entry.name);
    Builder b = begin_model(options);
    ValueId x = b.graph().input("input");

    ConvSpec stem = conv(2 * kGrowth, 7);
    stem.stride = {2, 2};
    x = b.relu("features.relu0", b.batch_norm("features.norm0", b.conv("features.conv0", x, stem)));
    x = b.max_pool("features.pool0", x, {.kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1}});
    for (size_t block = 0; block < member.layers.size(); ++block) {
        for (int layer = 0; layer < member.layers[block]; ++layer)
            x = dense_layer(b, fmt::format("features.denseblock{}.denselayer{}", block + 1, layer + 1), x);
        if (block + 1 < member.layers.size()) x = transition(b, fmt::format("features.transition{}", block + 1), x);
    }
    x = b.relu("features.relu5", b.batch_norm("features.norm5", x));

    x = b.adaptive_pool("avgpool", x, {1, 1});
    x = b.flatten("flatten", x);
    x = b.linear("classifier", x, {.outputs = options.classes, .zero_bias = true});
    return finish_model(b, entry, options, x);
}

}  // namespace convoy
