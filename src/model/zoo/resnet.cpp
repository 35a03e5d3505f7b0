// Residual networks. The ImageNet members are torchvision's (stride on the 3x3 convolution of a bottleneck, "v1.5"). The members for 32x32
// have a 3x3 stem without a pool: resnet18_cifar is ResNet-18 behind that stem, and resnet20/56/110 are the paper's three stages of 16, 32
// and 64 channels, with 1x1 projections where a shortcut changes its shape (the paper's option B; its option A has no parameters there).
#include <array>

#include "model/zoo/families.h"

namespace convoy {

namespace {

struct Member {
    std::string_view name;
    bool bottleneck;
    std::array<int, 4> blocks;  // per stage; 0: no such stage
    bool small;                 // for 32x32
    int64_t width = 64;         // channels of the first stage; each further one has twice as many
    int64_t wider = 1;          // factor on the inner width of a bottleneck
    Init init = Init::HeNormalFanOut;
};

constexpr std::array<Member, 10> kMembers{{{"resnet18", false, {2, 2, 2, 2}, false},
                                           {"resnet34", false, {3, 4, 6, 3}, false},
                                           {"resnet50", true, {3, 4, 6, 3}, false},
                                           {"resnet101", true, {3, 4, 23, 3}, false},
                                           {"resnet152", true, {3, 8, 36, 3}, false},
                                           {"wide_resnet50_2", true, {3, 4, 6, 3}, false, 64, 2},
                                           {"resnet18_cifar", false, {2, 2, 2, 2}, true, 64, 1, Init::Default},
                                           {"resnet20", false, {3, 3, 3, 0}, true, 16},
                                           {"resnet56", false, {9, 9, 9, 0}, true, 16},
                                           {"resnet110", false, {18, 18, 18, 0}, true, 16}}};

class ResNet {
  public:
    ResNet(const Member& member, const ModelOptions& options) : member_(member), b_(begin_model(options)) {}

    Model build(const ZooEntry& entry, const ModelOptions& options) {
        ValueId x = stem(b_.graph().input("input"));
        int64_t width = member_.width;
        for (size_t stage = 0; stage < member_.blocks.size(); ++stage, width *= 2) {
            for (int i = 0; i < member_.blocks[stage]; ++i)
                x = block(fmt::format("layer{}.{}.", stage + 1, i), x, width, stage > 0 && i == 0 ? 2 : 1);
        }
        x = b_.adaptive_pool("avgpool", x, {1, 1});
        x = b_.flatten("flatten", x);
        x = b_.linear("fc", x, {.outputs = options.classes});
        return finish_model(b_, entry, options, x);
    }

  private:
    ValueId conv_norm(const std::string& conv, const std::string& norm, ValueId x, int64_t filters, int64_t kernel, int64_t stride) {
        const int64_t pad = kernel / 2;
        const ConvSpec spec{.filters = filters,
                            .kernel = {kernel, kernel},
                            .stride = {stride, stride},
                            .pad = {pad, pad},
                            .bias = false,
                            .init = member_.init};
        return b_.batch_norm(norm, b_.conv(conv, x, spec));
    }

    ValueId stem(ValueId x) {
        if (member_.small) return b_.relu("relu", conv_norm("conv1", "bn1", x, member_.width, 3, 1));
        x = b_.relu("relu", conv_norm("conv1", "bn1", x, member_.width, 7, 2));
        return b_.max_pool("maxpool", x, {.kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1}});
    }

    ValueId block(const std::string& name, ValueId x, int64_t width, int64_t stride) {
        const int64_t filters = member_.bottleneck ? 4 * width : width;
        ValueId y = x;
        if (member_.bottleneck) {
            const int64_t inner = width * member_.wider;
            y = b_.relu(name + "relu1", conv_norm(name + "conv1", name + "bn1", y, inner, 1, 1));
            y = b_.relu(name + "relu2", conv_norm(name + "conv2", name + "bn2", y, inner, 3, stride));
            y = conv_norm(name + "conv3", name + "bn3", y, filters, 1, 1);
        } else {
            y = b_.relu(name + "relu1", conv_norm(name + "conv1", name + "bn1", y, filters, 3, stride));
            y = conv_norm(name + "conv2", name + "bn2", y, filters, 3, 1);
        }
        ValueId shortcut = x;
        if (stride != 1 || b_.shape(x)[1] != filters)
            shortcut = conv_norm(name + "downsample.0", name + "downsample.1", x, filters, 1, stride);
        return b_.relu(name + "relu", b_.add(name + "add", {y, shortcut}));
    }

    const Member& member_;
    Builder b_;
};

}  // namespace

Model resnet(const ZooEntry& entry, const ModelOptions& options) {
    return ResNet(member_of(kMembers, entry.name), options).build(entry, options);
}

}  // namespace convoy
