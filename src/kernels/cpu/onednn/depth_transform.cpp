#include "kernels/cpu/onednn/depth_transform.h"

#include "base/error.h"

namespace convoy::cpu {

namespace {

constexpr int64_t kLine = 16;

constexpr DepthTransform kTwo{
    .outputs = 2,
    .points = 4,
    .input = {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}},
    .weight = {{1, 0, 0}, {0.5f, 0.5f, 0.5f}, {0.5f, -0.5f, 0.5f}, {0, 0, 1}},
    .output = {{1, 1, 1, 0}, {0, 1, -1, -1}},
};

constexpr DepthTransform kFour{
    .outputs = 4,
    .points = 6,
    .input =
        {{4, 0, -5, 0, 1, 0}, {0, -4, -4, 1, 1, 0}, {0, 4, -4, -1, 1, 0}, {0, -2, -1, 2, 1, 0}, {0, 2, -1, -2, 1, 0}, {0, 4, 0, -5, 0, 1}},
    .weight = {{1.0f / 4, 0, 0},
               {-1.0f / 6, -1.0f / 6, -1.0f / 6},
               {-1.0f / 6, 1.0f / 6, -1.0f / 6},
               {1.0f / 24, 1.0f / 12, 1.0f / 6},
               {1.0f / 24, -1.0f / 12, 1.0f / 6},
               {0, 0, 1}},
    .output = {{1, 1, 1, 1, 1, 0}, {0, 1, -1, 2, -2, 0}, {0, 1, 1, 4, 4, 0}, {0, 1, -1, 8, -8, 1}},
};

void add_source(vec::CombineArgs& args, const float* source, float factor) {
    args.src[args.count] = source;
    args.factor[args.count++] = factor;
}

// Calls fn(place in the range, sample, first output slice, block) for every tile of the range and every block, on threads.
template <class Fn>
void for_tiles(const TileRange& tiles, const Slices& slices, const CpuContext& context, const Fn& fn) {
    const int64_t units = tiles.number * slices.blocks;
    in_parts(parts_for(context, units * slices.lines * kLine), units, [&](int, int64_t begin, int64_t end) {
        for (int64_t unit = begin; unit < end; ++unit) {
            const int64_t tile = tiles.first + unit / slices.blocks;
            fn(unit, tile / tiles.per_sample, tile % tiles.per_sample * tiles.outputs, unit % slices.blocks);
        }
    });
}

// Calls fn(block) for every block of weights, on threads.
template <class Fn>
void for_weights(const DepthWeights& weights, const CpuContext& context, const Fn& fn) {
    in_parts(parts_for(context, weights.blocks * weights.lines * kLine), weights.blocks, [&](int, int64_t begin, int64_t end) {
        for (int64_t block = begin; block < end; ++block) fn(block);
    });
}

}  // namespace

const DepthTransform& depth_transform(int outputs) {
    CONVOY_CHECK(outputs == 2 || outputs == 4, "no transform F({}, 3)", outputs);
    return outputs == 2 ? kTwo : kFour;
}

Slices slices_of(const Operand& operand) {
    const Shape& shape = operand.desc.shape;
    const int64_t channels = shape[1], depth = shape[2], lines = shape[3] * shape[4];
    Slices s{.data = static_cast<float*>(operand.data), .blocks = channels / kLine, .depth = depth, .lines = lines};
    s.sample_step = channels * depth * lines;
    if (operand.layout == Layout::channels_last(5)) {
        s.block_step = kLine;
        s.depth_step = channels * lines;
        s.line_step = channels;
    } else {
        CONVOY_CHECK(operand.layout == Layout::blocked(5, kLine), "slices of layout {}", operand.layout.text());
        s.block_step = kLine * depth * lines;
        s.depth_step = kLine * lines;
        s.line_step = kLine;
    }
    return s;
}

void gather_tiles(const Slices& from, const TileRange& tiles, const std::vector<Tap>& taps, float* to, const CpuContext& context) {
    const auto combine = vector_kernels().combine;
    for_tiles(tiles, from, context, [&](int64_t unit, int64_t sample, int64_t first, int64_t block) {
        vec::CombineArgs args{.src_step = from.line_step, .dst = to + unit * from.lines * kLine};
        const float* const base = from.data + sample * from.sample_step + block * from.block_step;
        for (const Tap& tap : taps)
            if (first + tap.slice >= 0 && first + tap.slice < from.depth)
                add_source(args, base + (first + tap.slice) * from.depth_step, tap.factor);
        combine(args, from.lines);
    });
}

void scatter_tiles(const float* from, const Slices& to, const TileRange& tiles, const std::vector<TapResult>& results, const Ending& ending,
                   const CpuContext& context) {
    const auto combine = vector_kernels().combine;
    for_tiles(tiles, to, context, [&](int64_t unit, int64_t sample, int64_t first, int64_t block) {
        float* const base = to.data + sample * to.sample_step + block * to.block_step;
        for (const TapResult& result : results) {
            if (first + result.tap.slice >= to.depth) continue;
            vec::CombineArgs args{.dst_step = to.line_step, .dst = base + (first + result.tap.slice) * to.depth_step};
            add_source(args, from + unit * to.lines * kLine, result.tap.factor);
            args.add = result.add;
            args.last = result.last;
            args.bias = ending.bias ? ending.bias + block * kLine : nullptr;
            args.slope = ending.slope;
            combine(args, to.lines);
        }
    });
}

void gather_weights(const DepthWeights& from, const float factor[3], float* to, const CpuContext& context) {
    const auto combine = vector_kernels().combine;
    const int64_t floats = from.lines * kLine;
    for_weights(from, context, [&](int64_t block) {
        vec::CombineArgs args{.dst = to + block * floats};
        for (int64_t kd = 0; kd < 3; ++kd)
            if (factor[kd] != 0) add_source(args, from.data + (block * 3 + kd) * floats, factor[kd]);
        combine(args, from.lines);
    });
}

void scatter_weights(const float* from, const DepthWeights& to, const float factor[3], const bool add[3], const CpuContext& context) {
    const auto combine = vector_kernels().combine;
    const int64_t floats = to.lines * kLine;
    for_weights(to, context, [&](int64_t block) {
        for (int64_t kd = 0; kd < 3; ++kd) {
            if (factor[kd] == 0) continue;
            vec::CombineArgs args{.dst = to.data + (block * 3 + kd) * floats, .add = add[kd]};
            add_source(args, from + block * floats, factor[kd]);
            combine(args, to.lines);
        }
    });
}

}  // namespace convoy::cpu
