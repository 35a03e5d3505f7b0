// Normalisation and dropout, which follow the mode.
#include "base/random.h"
#include "onnx/context.h"

namespace convoy::onnx {

namespace {

bool is_state(NodeContext& c, ValueId v) { return c.graph().value(v).state != kNone; }

// running*momentum + (1 - momentum)*batch, as ONNX has it: the variance is that of the batch, undivided by count - 1.
ValueId mixed(NodeContext& c, ValueId running, ValueId stats, int row, double momentum) {
    const int64_t channels = c.shape_of(running)[0];
    const ValueId batch = c.reshape(c.slice(stats, 0, row, 1), {channels});
    return c.plus(c.scale(running, momentum), c.scale(batch, 1 - momentum));
}

void batch_norm(NodeContext& c) {
    const double epsilon = c.real("epsilon", 1e-5), momentum = c.real("momentum", 0.9);
    if (c.integer("spatial", 1) != 1) c.refuse("spatial = 0 is not supported");
    const bool says_training = c.opset() >= 14 ? c.integer("training_mode", 0) == 1 : c.opset() < 7 && c.integer("is_test", 0) == 0;
    if (c.opset() < 7) c.integers("consumed_inputs");
    const Shape shape = c.shape(0);
    if (shape.size() < 2) c.refuse(fmt::format("its input is {}, expected N x C ...", to_string(shape)));
    const bool training = c.options().mode == NodeMode::Training || (c.options().mode == NodeMode::AsWritten && says_training);
    const ValueId x = c.value(0), gamma = c.value(1), beta = c.value(2), mean = c.buffer(3), variance = c.buffer(4);
    ValueId stats = kNone;
    if (training) {
        const int64_t count = numel(shape) / shape[1];
        if (count < 2) c.refuse(fmt::format("training needs more than one element per channel, found an input of {}", to_string(shape)));
        stats = c.add(BatchStatsOp{}, {x});
        if (c.options().mode == NodeMode::Training && is_state(c, mean) && is_state(c, variance)) {
            const auto next = c.add_all(RunningUpdateOp{1 - momentum, count}, {mean, variance, stats});
            c.graph().add_store(mean, next[0]);
            c.graph().add_store(variance, next[1]);
        }
        if (c.wants(1)) c.set(1, mixed(c, mean, stats, 0, momentum));
        if (c.wants(2)) c.set(2, mixed(c, variance, stats, 1, momentum));
    } else {
        stats = c.add(RunningStatsOp{}, {mean, variance});
    }
    c.set(0, c.add(BatchNormalizeOp{epsilon}, {x, stats, gamma, beta}));
    // Older sets give the statistics out as well, for a training that is not this one's.
    for (size_t o = 1; o < c.outputs() && !training; ++o)
        if (c.wants(o)) c.set(o, o % 2 == 1 ? mean : variance);
}

void instance_norm(NodeContext& c) {
    const double epsilon = c.real("epsilon", 1e-5);
    const Shape shape = c.shape(0);
    if (shape.size() < 3) c.refuse(fmt::format("its input is {}, expected N x C and spatial dims", to_string(shape)));
    const Cells cells{.groups = shape[1]};
    const ValueId x = c.value(0);
    c.set(0, c.add(CellNormalizeOp{cells, epsilon}, {x, c.add(CellStatsOp{cells}, {x}), c.value(1), c.value(2)}));
}

void layer_norm(NodeContext& c) {
    const double epsilon = c.real("epsilon", 1e-5);
    c.integer("stash_type", 1);
    const Shape shape = c.shape(0);
    const int axis = c.axis_in(c.integer("axis", -1), shape.size());
    const int64_t rows = product(shape, 0, axis), columns = product(shape, axis, shape.size());
    const Cells cells{.groups = 0, .axis = 1};
    const ValueId x = c.reshape(c.value(0), {rows, columns}), stats = c.add(CellStatsOp{cells}, {x});
    const auto affine = [&](size_t i, double fallback) {
        if (c.has(i)) return c.reshape(c.broadcast(c.value(i), shape.slice(axis)), {columns});
        return c.constant(c.filled({columns}, fallback), ".bias");
    };
    const ValueId y = c.add(CellNormalizeOp{cells, epsilon}, {x, stats, affine(1, 1), affine(2, 0)});
    c.set(0, c.reshape(y, shape));
    const Shape kept = join(shape.slice(0, axis), Dims::filled(shape.size() - axis, 1));
    if (c.wants(1)) c.set(1, c.reshape(c.slice(stats, 0, 0, 1), kept));
    if (c.wants(2)) {
        const ValueId variance = c.shift(c.slice(stats, 0, 1, 1), epsilon);
        c.set(2, c.reshape(c.map(Pointwise::Power, variance, -0.5), kept));
    }
}

void lrn(NodeContext& c) {
    const LrnOp op{.size = c.integer("size", 0), .alpha = c.real("alpha", 1e-4), .beta = c.real("beta", 0.75), .k = c.real("bias", 1)};
    if (op.size < 1 || op.size % 2 == 0) c.refuse(fmt::format("a window of {} channels, expected an odd number", op.size));
    c.set(0, c.add(op, {c.value(0)}));
}

void mean_variance(NodeContext& c) {
    auto given = c.integers("axes");
    if (given.empty()) given = {0, 2, 3};
    const auto axes = c.axes_in(given, c.shape(0).size());
    const ValueId x = c.value(0);
    int64_t count = 1;
    for (const int d : axes) count *= c.shape(0)[d];
    const auto mean = [&](ValueId v) { return c.scale(c.sum_over(v, axes), 1.0 / static_cast<double>(count)); };
    const ValueId centred = c.plus(x, c.negative(mean(x)));
    const ValueId deviation = c.shift(c.map(Pointwise::Sqrt, mean(c.times(centred, centred))), 1e-9);
    c.set(0, c.times(centred, c.map(Pointwise::Reciprocal, deviation)));
}

void dropout(NodeContext& c) {
    double p = 0.5;
    bool says_training = false;
    if (c.opset() >= 12) {
        c.integer("seed", 0);
        if (c.has(1)) p = c.known_number(1);
        says_training = c.has(2) && c.known_number(2) != 0;
    } else {
        p = c.real("ratio", 0.5);
        says_training = c.opset() < 7 && c.integer("is_test", 0) == 0;
    }
    if (!(p >= 0 && p < 1)) c.refuse(fmt::format("a ratio of {}, expected 0 <= ratio < 1", p));
    const NodeMode mode = c.options().mode;
    const bool drops = p > 0 && ((mode == NodeMode::Training && c.options().dropout) || (mode == NodeMode::AsWritten && says_training));
    const DropoutOp op{.p = p, .stream = stream_of(c.layer())};
    c.set(0, drops ? c.add(op, {c.value(0)}) : c.value(0));
    if (!c.wants(1)) return;
    const Shape shape = c.shape(0);
    if (!drops) return c.set_known(1, c.filled(shape, 1));
    // The mask is what the same op makes of ones.
    const ValueId ones = c.broadcast(c.constant(c.filled({1}, 1), ".one"), shape);
    c.set(1, c.scale(c.add(op, {ones}), 1 - p));
}

}  // namespace

std::span<const OpEntry> norm_ops() {
    static constexpr OpEntry entries[] = {{"BatchNormalization", batch_norm},           {"InstanceNormalization", instance_norm},
                                          {"LayerNormalization", layer_norm},           {"LRN", lrn},
                                          {"MeanVarianceNormalization", mean_variance}, {"Dropout", dropout}};
    return entries;
}

}  // namespace convoy::onnx
