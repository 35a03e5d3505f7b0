// 3D U-Net: a class for every voxel. Three levels down (two convolutions, then a max pool), a bottom, and three levels up (a transposed
// convolution, joined with what the level had on the way down, then two convolutions). No biases.
#include <array>

#include "base/error.h"
#include "model/zoo/families.h"

namespace convoy {

namespace {

constexpr std::array<int64_t, 3> kDown{32, 64, 128};  // filters of the first convolution of a level; the second has twice as many
constexpr int64_t kBottom = 256;

// Two times convolution, batch norm, ReLU; numbered as in a PyTorch sequence.
ValueId two_convs(Builder& b, const std::string& name, ValueId x, int64_t middle, int64_t last) {
    int index = 0;
    const auto next = [&] { return fmt::format("{}.{}", name, index++); };
    for (const int64_t filters : {middle, last}) {
        x = b.conv(next(), x, {.filters = filters, .kernel = {3, 3, 3}, .pad = {1, 1, 1}, .bias = false});
        x = b.batch_norm(next(), x);
        x = b.relu(next(), x);
    }
    return x;
}

}  // namespace

Model unet3d(const ZooEntry& entry, const ModelOptions& options) {
    for (const int64_t size : options.input.slice(1))
        require(size % 8 == 0, "three poolings halve each spatial dim, so expected multiples of 8, found {}", to_string(options.input));
    Builder b = begin_model(options);
    ValueId x = b.graph().input("input");

    std::vector<ValueId> skips;
    for (size_t level = 0; level < kDown.size(); ++level) {
        x = two_convs(b, fmt::format("down.{}", level), x, kDown[level], 2 * kDown[level]);
        skips.push_back(x);
        x = b.max_pool(fmt::format("pool.{}", level), x, {.kernel = {2, 2, 2}});
    }
    x = two_convs(b, "bottom", x, kBottom, 2 * kBottom);
    for (size_t level = 0; level < kDown.size(); ++level) {
        const int64_t channels = b.shape(x)[1], filters = channels / 2;
        x = b.conv_transpose(fmt::format("up.{}", level), x,
                             {.filters = channels, .kernel = {2, 2, 2}, .stride = {2, 2, 2}, .bias = false});
        x = b.concat(fmt::format("concat.{}", level), {x, skips.back()});
        skips.pop_back();
        x = two_convs(b, fmt::format("merge.{}", level), x, filters, filters);
    }
    x = b.conv("head", x, {.filters = options.classes, .kernel = {1, 1, 1}, .bias = false});
    return finish_model(b, entry, options, x);
}

}  // namespace convoy
