// GoogLeNet (Inception v1) as torchvision has it: batch norm after every convolution, and a third branch of 3x3 where the paper has 5x5.
// In training mode two auxiliary heads add to the loss with a weight of 0.3 each; in evaluation mode they and their parameters are absent.
#include <array>

#include "model/zoo/families.h"

namespace convoy {

namespace {

constexpr double kEpsilon = 1e-3;
constexpr double kAuxiliaryWeight = 0.3;

// Filters of the four branches: 1x1; 1x1 then 3x3; 1x1 then 3x3; pool then 1x1.
struct Block {
    const char* name;
    int64_t direct, reduce2, branch2, reduce3, branch3, project;
};
constexpr std::array<Block, 9> kBlocks{{{"inception3a", 64, 96, 128, 16, 32, 32},
                                        {"inception3b", 128, 128, 192, 32, 96, 64},
                                        {"inception4a", 192, 96, 208, 16, 48, 64},
                                        {"inception4b", 160, 112, 224, 24, 64, 64},
                                        {"inception4c", 128, 128, 256, 24, 64, 64},
                                        {"inception4d", 112, 144, 288, 32, 64, 64},
                                        {"inception4e", 256, 160, 320, 32, 128, 128},
                                        {"inception5a", 256, 160, 320, 32, 128, 128},
                                        {"inception5b", 384, 192, 384, 48, 128, 128}}};

ValueId conv_norm_relu(Builder& b, const std::string& name, ValueId x, ConvSpec spec) {
    spec.bias = false;
    spec.init = Init::Normal001;
    x = b.conv(name + ".conv", x, spec);
    x = b.batch_norm(name + ".bn", x, kEpsilon);
    return b.relu(name + ".relu", x);
}

ValueId inception(Builder& b, ValueId x, const Block& block) {
    const auto branch = [&](int i) { return fmt::format("{}.branch{}", block.name, i); };
    const auto conv1x1 = [&](const std::string& name, ValueId v, int64_t filters) {
        return conv_norm_relu(b, name, v, {.filters = filters, .kernel = {1, 1}});
    };
    const auto conv3x3 = [&](const std::string& name, ValueId v, int64_t filters) {
        return conv_norm_relu(b, name, v, {.filters = filters, .kernel = {3, 3}, .pad = {1, 1}});
    };
    const ValueId direct = conv1x1(branch(1), x, block.direct);
    const ValueId second = conv3x3(branch(2) + ".1", conv1x1(branch(2) + ".0", x, block.reduce2), block.branch2);
    const ValueId third = conv3x3(branch(3) + ".1", conv1x1(branch(3) + ".0", x, block.reduce3), block.branch3);
    const ValueId pooled = b.max_pool(branch(4) + ".0", x, {.kernel = {3, 3}, .stride = {1, 1}, .pad = {1, 1}, .ceil = true});
    const ValueId fourth = conv1x1(branch(4) + ".1", pooled, block.project);
    return b.concat(std::string(block.name) + ".concat", {direct, second, third, fourth});
}

ValueId auxiliary_head(Builder& b, const std::string& name, ValueId x, int64_t classes) {
    x = b.adaptive_pool(name + ".pool", x, {4, 4});
    x = conv_norm_relu(b, name + ".conv", x, {.filters = 128, .kernel = {1, 1}});
    x = b.flatten(name + ".flatten", x);
    x = b.linear(name + ".fc1", x, {.outputs = 1024, .init = Init::Normal001});
    x = b.relu(name + ".relu", x);
    x = b.dropout(name + ".dropout", x, 0.7);
    return b.linear(name + ".fc2", x, {.outputs = classes, .init = Init::Normal001});
}

}  // namespace

Model googlenet(const ZooEntry& entry, const ModelOptions& options) {
    Builder b = begin_model(options);
    ValueId x = b.graph().input("input");
    const PoolSpec pool{.kernel = {3, 3}, .stride = {2, 2}, .ceil = true};
    std::vector<NamedValue> auxiliary;
    const auto add_head = [&](const char* name) {
        if (options.mode == Mode::Training) auxiliary.push_back({name, auxiliary_head(b, name, x, options.classes)});
    };

    x = conv_norm_relu(b, "conv1", x, {.filters = 64, .kernel = {7, 7}, .stride = {2, 2}, .pad = {3, 3}});
    x = b.max_pool("maxpool1", x, pool);
    x = conv_norm_relu(b, "conv2", x, {.filters = 64, .kernel = {1, 1}});
    x = conv_norm_relu(b, "conv3", x, {.filters = 192, .kernel = {3, 3}, .pad = {1, 1}});
    x = b.max_pool("maxpool2", x, pool);
    for (const Block& block : kBlocks) {
        const std::string_view name = block.name;
        if (name == "inception4a") x = b.max_pool("maxpool3", x, pool);
        if (name == "inception5a") x = b.max_pool("maxpool4", x, {.kernel = {2, 2}, .ceil = true});
        x = inception(b, x, block);
        if (name == "inception4a") add_head("aux1");
        if (name == "inception4d") add_head("aux2");
    }
    x = b.adaptive_pool("avgpool", x, {1, 1});
    x = b.flatten("flatten", x);
    x = b.dropout("dropout", x, 0.2);
    x = b.linear("fc", x, {.outputs = options.classes, .init = Init::Normal001});

    Model model = finish_model(b, entry, options, x);
    for (const auto& [name, value] : auxiliary) {
        model.graph.add_output(name, value);
        model.losses.push_back({.output = name, .weight = kAuxiliaryWeight});
    }
    return model;
}

}  // namespace convoy
