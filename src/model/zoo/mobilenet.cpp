// MobileNetV2: inverted residuals. A block widens by 1x1, filters each channel by itself (a depthwise 3x3), and narrows by 1x1 without an
// activation.
#include <array>

#include "model/zoo/families.h"

namespace convoy {

namespace {

struct Stage {
    int64_t widen, channels;
    int blocks;
    int64_t stride;
};
constexpr std::array<Stage, 7> kStages{
    {{1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2}, {6, 64, 4, 2}, {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}}};

ConvSpec conv(int64_t filters, int64_t kernel, int64_t stride = 1, int64_t groups = 1) {
    const int64_t pad = kernel / 2;
    return {.filters = filters,
            .kernel = {kernel, kernel},
            .stride = {stride, stride},
            .pad = {pad, pad},
            .groups = groups,
            .bias = false,
            .init = Init::HeNormalFanOut};
}

ValueId conv_norm_relu6(Builder& b, const std::string& name, ValueId x, const ConvSpec& spec) {
    x = b.batch_norm(name + ".1", b.conv(name + ".0", x, spec));
    return b.unary(name + ".2", x, Unary::Relu6);
}

ValueId inverted_residual(Builder& b, const std::string& name, ValueId x, const Stage& stage, int64_t stride) {
    const int64_t channels = b.shape(x)[1], inner = channels * stage.widen;
    ValueId y = x;
    int index = 0;
    const auto next = [&] { return fmt::format("{}.conv.{}", name, index++); };
    if (stage.widen != 1) y = conv_norm_relu6(b, next(), y, conv(inner, 1));
    y = conv_norm_relu6(b, next(), y, conv(inner, 3, stride, inner));
    y = b.conv(next(), y, conv(stage.channels, 1));
    y = b.batch_norm(next(), y);
    return stride == 1 && channels == stage.channels ? b.add(name + ".add", {x, y}) : y;
}

}  // namespace

Model mobilenet(const ZooEntry& entry, const ModelOptions& options) {
    Builder b = begin_model(options);
    ValueId x = b.graph().input("input");

    int index = 0;
    const auto next = [&] { return fmt::format("features.{}", index++); };
    x = conv_norm_relu6(b, next(), x, conv(32, 3, 2));
    for (const Stage& stage : kStages)
        for (int i = 0; i < stage.blocks; ++i) x = inverted_residual(b, next(), x, stage, i == 0 ? stage.stride : 1);
    x = conv_norm_relu6(b, next(), x, conv(1280, 1));

    x = b.adaptive_pool("avgpool", x, {1, 1});
    x = b.flatten("flatten", x);
    x = b.dropout("classifier.0", x, 0.2);
    x = b.linear("classifier.1", x, {.outputs = options.classes, .init = Init::Normal001, .zero_bias = true});
    return finish_model(b, entry, options, x);
}

}  // namespace convoy
