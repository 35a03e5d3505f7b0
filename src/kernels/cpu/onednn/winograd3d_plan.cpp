#include "kernels/cpu/onednn/winograd3d_plan.h"

#include <fmt/format.h>

namespace convoy::cpu {

using dnnl::memory;

namespace {

constexpr int64_t kBlock = 16;

int64_t chunk_of(int64_t tiles, int64_t bytes_per_tile, int64_t cached_bytes) {
    for (int64_t chunks = 1; chunks < tiles; ++chunks)
        if (tiles % chunks == 0 && tiles / chunks * bytes_per_tile <= cached_bytes) return tiles / chunks;
    return 1;
}

}  // namespace

std::string winograd3d_refusal(const ConvView& v) {
    if (v.rank != 3 || v.kernel != Three{3, 3, 3}) return "the window is not 3x3x3";
    if (!v.all_ones(v.stride)) return "the stride is not 1";
    if (!v.all_ones(v.dilation)) return "the window is dilated";
    if (v.groups != 1) return "there are groups";
    if (v.c % kBlock != 0 || v.f % kBlock != 0) return fmt::format("the channels are no multiple of {}", kBlock);
    return library_refusal(v);
}

Winograd3dPlan winograd3d_plan(const ConvView& view, int outputs, int64_t cached_bytes) {
    Winograd3dPlan plan{.conv = view.conv,
                        .x = view.x,
                        .w = view.w,
                        .y = view.y,
                        .transform = &depth_transform(outputs),
                        .tiles = 0,
                        .chunk = 1,
                        .chunks = 1};
    const int64_t depth = plan.mirrored() ? plan.x[2] : plan.y[2];
    plan.tiles = (depth + outputs - 1) / outputs;
    const int64_t all = plan.x[0] * plan.tiles, floats_per_tile = plan.floats_of(plan.x) + plan.floats_of(plan.y);
    plan.chunk = chunk_of(all, floats_per_tile * static_cast<int64_t>(sizeof(float)), cached_bytes);
    plan.chunks = all / plan.chunk;
    return plan;
}

DepthWeights Winograd3dPlan::weights(float* data) const {
    return {.data = data, .blocks = w[0] * w[1] / (kBlock * kBlock), .lines = 9 * kBlock};
}

std::vector<Tap> Winograd3dPlan::input_taps(int point) const {
    std::vector<Tap> taps;
    for (int j = 0; j < transform->points; ++j)
        if (transform->input[point][j] != 0) taps.push_back({j - padding(), transform->input[point][j]});
    return taps;
}

// The library's products and its transforms of tiles and of weights, in every chunk; our transform of the weights, once; our passes over the
// activations. Measured on a core that multiplies at about 120 GFLOP/s.
double seconds_of(const Winograd3dPlan& plan, const Layout& layout) {
    constexpr double kRate = 290e9, kTileFloat = 0.5e-9, kLibraryWeight = 15e-9, kOwnWeight = 8e-9;
    const double bytes_per_second = layout.inner.empty() ? 12.5e9 : 25e9;
    const auto rounded = [](int64_t n) { return static_cast<double>((n + 3) / 4 * 4); };
    const auto points = static_cast<double>(plan.transform->points), chunks = static_cast<double>(plan.chunks);
    const auto weights = static_cast<double>(plan.w[0] * plan.w[1]);
    const Shape& result = plan.mirrored() ? plan.x : plan.y;
    const double products = 18 * static_cast<double>(plan.chunk) * weights * rounded(result[3]) * rounded(result[4]) / kRate;
    const double tiles = static_cast<double>(plan.floats_of(plan.x) + plan.floats_of(plan.y)) * kTileFloat;
    const double passes = static_cast<double>(numel(plan.x) + numel(plan.y)) * 6 * sizeof(float) / bytes_per_second;
    return points * (chunks * (products + tiles + weights * kLibraryWeight) + weights * kOwnWeight) + passes;
}

Described describe_slice(const Winograd3dPlan& plan, bool make) {
    const auto flat = [](const Dims& d) { return d.slice(1); };
    const Window& window = plan.conv.window;
    const ConvProblem conv{
        .direction = plan.conv.direction,
        .window = {flat(window.kernel), flat(window.stride), flat(window.dilation), flat(window.pad_lo), flat(window.pad_hi)},
        .groups = 1,
        .x = 0,
        .w = 1,
        .y = 2,
        .bias = plan.sums_bias() ? 3 : -1};
    const auto slices = [&](const Shape& s) { return Shape{plan.chunk, s[1], s[3], s[4]}; };
    const ConvDescriber describer(conv, ConvDescriber::Shapes{slices(plan.x), {plan.w[0], plan.w[1], 3, 3}, slices(plan.y)});
    const Layout blocked = Layout::blocked(4, kBlock);
    return describer.describe({"winograd", dnnl::algorithm::convolution_winograd, blocked, blocked}, make);
}

std::optional<Layout> weight_layout(const Winograd3dPlan& plan, const Described& slice) {
    const auto flat = layout_of(slice.w, {plan.w[0], plan.w[1], 3, 3});
    if (!flat || flat->order != std::vector<int>{0, 1, 2, 3} || flat->inner.size() != 2) return std::nullopt;
    for (const Block& block : flat->inner)
        if (block.dim > 1 || block.size != kBlock) return std::nullopt;
    return Layout{.order = {0, 1, 2, 3, 4}, .inner = flat->inner};
}

Winograd3dWorkspace::Winograd3dWorkspace(const Winograd3dPlan& plan, const Described& slice, void* memory) {
    Scratch scratch(memory);
    x = scratch.take<float>(plan.floats_of(plan.x));
    y = scratch.take<float>(plan.floats_of(plan.y));
    w = scratch.take<float>(plan.weight_floats() * plan.weights_kept());
    bias = scratch.take<float>(plan.sums_bias() ? plan.y[1] : 0);
    scratchpad = scratch.take<std::byte>(static_cast<int64_t>(slice.scratchpad.get_size()));
    bytes = scratch.bytes();
}

std::unique_ptr<Kernel> bind_slice(const Winograd3dPlan& plan, const Described& slice, const Winograd3dWorkspace& space, float* w,
                                   int threads) {
    const memory x(slice.x, engine(), space.x), weights(slice.w, engine(), w), y(slice.y, engine(), space.y);
    auto arguments = conv_arguments(plan.conv.direction, x, weights, y);
    if (plan.sums_bias())
        arguments.emplace_back(DNNL_ARG_DIFF_BIAS,
                               memory({{plan.y[1]}, memory::data_type::f32, memory::format_tag::a}, engine(), space.bias));
    arguments.emplace_back(DNNL_ARG_SCRATCHPAD, memory(slice.scratchpad, engine(), space.scratchpad));
    return std::make_unique<OneDnnKernel>(slice.primitive, arguments, threads);
}

}  // namespace convoy::cpu
