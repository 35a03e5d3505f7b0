// VGG: stacks of 3x3 convolutions between 2x2 max pools, then three large fully connected layers. The _bn members normalise after each
// convolution.
#include <array>

#include "model/zoo/families.h"

namespace convoy {

namespace {

struct Member {
    std::string_view name;
    std::array<int, 5> convs;  // convolutions before each of the five pools
    bool norm;
};

constexpr std::array<Member, 8> kMembers{{{"vgg11", {1, 1, 2, 2, 2}, false},
                                          {"vgg13", {2, 2, 2, 2, 2}, false},
                                          {"vgg16", {2, 2, 3, 3, 3}, false},
                                          {"vgg19", {2, 2, 4, 4, 4}, false},
                                          {"vgg11_bn", {1, 1, 2, 2, 2}, true},
                                          {"vgg13_bn", {2, 2, 2, 2, 2}, true},
                                          {"vgg16_bn", {2, 2, 3, 3, 3}, true},
                                          {"vgg19_bn", {2, 2, 4, 4, 4}, true}}};
constexpr std::array<int64_t, 5> kWidths{64, 128, 256, 512, 512};

}  // namespace

Model vgg(const ZooEntry& entry, const ModelOptions& options) {
    const Member& member = member_of(kMembers, entry.name);
    Builder b = begin_model(options);
    ValueId x = b.graph().input("input");

    int index = 0;
    const auto next = [&] { return fmt::format("features.{}", index++); };
    for (size_t stage = 0; stage < kWidths.size(); ++stage) {
        for (int i = 0; i < member.convs[stage]; ++i) {
            x = b.conv(next(), x,
                       {.filters = kWidths[stage], .kernel = {3, 3}, .pad = {1, 1}, .init = Init::HeNormalFanOut, .zero_bias = true});
            if (member.norm) x = b.batch_norm(next(), x);
            x = b.relu(next(), x);
        }
        x = b.max_pool(next(), x, {.kernel = {2, 2}});
    }

    const auto fully_connected = [&](const char* name, int64_t outputs) {
        x = b.linear(name, x, {.outputs = outputs, .init = Init::Normal001, .zero_bias = true});
    };
    x = b.adaptive_pool("avgpool", x, {7, 7});
    x = b.flatten("flatten", x);
    fully_connected("classifier.0", 4096);
    x = b.relu("classifier.1", x);
    x = b.dropout("classifier.2", x, 0.5);
    fully_connected("classifier.3", 4096);
    x = b.relu("classifier.4", x);
    x = b.dropout("classifier.5", x, 0.5);
    fully_connected("classifier.6", options.classes);
    return finish_model(b, entry, options, x);
}

}  // namespace convoy
