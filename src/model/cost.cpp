// One count per op serves both conventions of cost.h: products and the combining steps of reductions, which the literature counts, are kept
// apart from elementwise operations, which it does not.
#include "model/cost.h"

#include <algorithm>
#include <bit>

namespace convoy {

namespace {

using Types = std::vector<ValueType>;

struct Count {
    double products = 0;     // multiply-adds
    double combining = 0;    // additions or comparisons of reductions
    double elementwise = 0;  // everything else
    double tree = 0;         // depth of the products' and reductions' trees
    double chain = 0;        // depth of the elementwise operations
};

double size(const ValueType& t) { return static_cast<double>(numel(t.shape)); }

// ceil(log2(n)): the depth of a tree over n elements.
double log2_up(int64_t n) { return n <= 1 ? 0 : static_cast<double>(std::bit_width(static_cast<uint64_t>(n - 1))); }
// The same, tree by tree along each dim.
double log2_up(const Dims& dims) {
    double sum = 0;
    for (const int64_t d : dims) sum += log2_up(d);
    return sum;
}

Count elementwise(double operations, double depth = 1) { return {.elementwise = operations, .chain = depth}; }
Count nothing() { return {}; }  // moves elements, computes nothing

// Every output is the combination of `from` / `to` elements; of none where a rank has no part of the input.
Count reduction(double from, double to, double tree) { return {.combining = std::max(from - to, 0.0), .tree = tree}; }
Count reduction(const ValueType& from, const ValueType& to) {
    return reduction(size(from), size(to), log2_up(numel(from.shape) / std::max<int64_t>(numel(to.shape), 1)));
}

Dims spatial(const ValueType& t) { return t.shape.slice(2); }

// --- Convolution and fully connected layers: one product per output, channel of its group and tap ---

Count count(const ConvOp& op, const Types& in, const Types& out) {
    const Shape& w = in[1].shape;
    return {.products = size(out[0]) * size(in[1]) / static_cast<double>(w[0]), .tree = log2_up(w[1]) + log2_up(op.window.kernel)};
}
Count count(const ConvGradInputOp& op, const Types& in, const Types&) {
    const Shape& w = in[1].shape;
    return {.products = size(in[0]) * size(in[1]) / static_cast<double>(w[0]),
            .tree = log2_up(w[0] / op.groups) + log2_up(op.window.kernel)};
}
Count count(const ConvGradWeightOp&, const Types& in, const Types& out) {
    const Shape& dy = in[1].shape;
    return {.products = size(in[1]) * size(out[0]) / static_cast<double>(dy[1]), .tree = log2_up(dy[0]) + log2_up(spatial(in[1]))};
}

Count count(const LinearOp&, const Types& in, const Types&) {
    return {.products = static_cast<double>(in[0].shape[0]) * size(in[1]), .tree = log2_up(in[1].shape[1])};
}
Count count(const LinearGradInputOp&, const Types& in, const Types&) {
    return {.products = static_cast<double>(in[0].shape[0]) * size(in[1]), .tree = log2_up(in[1].shape[0])};
}
Count count(const LinearGradWeightOp&, const Types& in, const Types& out) {
    return {.products = static_cast<double>(in[0].shape[0]) * size(out[0]), .tree = log2_up(in[0].shape[0])};
}

Count count(const LocalConvOp& op, const Types& in, const Types&) {
    return {.products = static_cast<double>(in[0].shape[0]) * size(in[1]), .tree = log2_up(in[0].shape[1]) + log2_up(op.window.kernel)};
}
Count count(const LocalConvGradInputOp& op, const Types& in, const Types&) {
    return {.products = static_cast<double>(in[0].shape[0]) * size(in[1]), .tree = log2_up(in[0].shape[1]) + log2_up(op.window.kernel)};
}
Count count(const LocalConvGradWeightOp&, const Types& in, const Types& out) {
    return {.products = static_cast<double>(in[0].shape[0]) * size(out[0]), .tree = log2_up(in[0].shape[0])};
}

Count count(const BiasOp&, const Types&, const Types& out) { return elementwise(size(out[0])); }
Count count(const BiasGradOp&, const Types& in, const Types& out) { return reduction(in[0], out[0]); }

// --- Pooling and resampling ---

// The tree of an input's gradient: the windows that overlap at one element.
double overlap_depth(const Window& w) {
    Dims overlaps;
    for (int i = 0; i < w.rank(); ++i) overlaps.push_back((w.kernel[i] + w.stride[i] - 1) / w.stride[i]);
    return log2_up(overlaps);
}

Count count(const MaxPoolOp& op, const Types&, const Types& out) {
    const double taps = static_cast<double>(numel(op.window.kernel));
    return reduction(size(out[0]) * taps, size(out[0]), log2_up(op.window.kernel));
}
Count count(const MaxPoolGradOp& op, const Types& in, const Types&) { return reduction(size(in[0]), 0, overlap_depth(op.window)); }

Count count(const MaxIndexOp&, const Types& in, const Types&) { return elementwise(size(in[0])); }
Count count(const AveragePoolOp& op, const Types&, const Types& out) {
    const double taps = static_cast<double>(numel(op.window.kernel));
    Count c = reduction(size(out[0]) * taps, size(out[0]), log2_up(op.window.kernel));
    c.elementwise = size(out[0]);
    c.chain = 1;
    return c;
}
Count count(const AveragePoolGradOp& op, const Types& in, const Types&) {
    const double taps = static_cast<double>(numel(op.window.kernel));
    return {.combining = size(in[0]) * taps, .elementwise = size(in[0]), .tree = overlap_depth(op.window), .chain = 1};
}

// Elements of all cells of an adaptive pool from `fine` to `coarse`; neighbouring cells may overlap.
double cell_elements(const Dims& fine, const Dims& coarse) {
    double total = 1;
    for (int i = 0; i < fine.size(); ++i) {
        int64_t along = 0;
        for (int64_t o = 0; o < coarse[i]; ++o) along += ((o + 1) * fine[i] + coarse[i] - 1) / coarse[i] - o * fine[i] / coarse[i];
        total *= static_cast<double>(along);
    }
    return total;
}
// ceil(from / to) per dim.
Dims ratio(const Dims& from, const Dims& to) {
    Dims result;
    for (int i = 0; i < from.size(); ++i) result.push_back((from[i] + to[i] - 1) / to[i]);
    return result;
}
double planes(const ValueType& t) { return static_cast<double>(t.shape[0] * t.shape[1]); }

Count count(const AdaptivePoolOp& op, const Types& in, const Types& out) {
    const double elements = planes(in[0]) * cell_elements(spatial(in[0]), op.output);
    return {
        .combining = elements - size(out[0]), .elementwise = size(out[0]), .tree = log2_up(ratio(spatial(in[0]), op.output)), .chain = 1};
}
Count count(const AdaptivePoolGradOp& op, const Types& in, const Types&) {
    const double elements = planes(in[0]) * cell_elements(op.input, spatial(in[0]));
    return {.combining = elements, .elementwise = size(in[0]), .tree = log2_up(ratio(spatial(in[0]), op.input)), .chain = 1};
}

// Linear: each fine element is the weighted sum of two neighbours along each dim.
double corners(int rank) { return static_cast<double>(int64_t{1} << rank); }

Count count(const UpsampleOp& op, const Types&, const Types& out) {
    if (op.mode == Resample::Nearest) return nothing();
    return {.products = size(out[0]) * corners(op.output.size()), .tree = static_cast<double>(op.output.size())};
}
Count count(const UpsampleGradOp& op, const Types& in, const Types& out) {
    const double tree = log2_up(ratio(spatial(in[0]), op.input));
    if (op.mode == Resample::Nearest) return reduction(size(in[0]), std::min(size(in[0]), size(out[0])), tree);
    return {.products = size(in[0]) * corners(op.input.size()), .tree = tree + static_cast<double>(op.input.size())};
}

// --- Normalisation: two trees, since the variance needs the mean ---

Count two_moments(double elements, double cells) {
    return {.combining = 2 * (elements - cells),
            .elementwise = 2 * elements + 2 * cells,
            .tree = 2 * log2_up(static_cast<int64_t>(elements / cells)),
            .chain = 4};
}
double stat_cells(const ValueType& stats) { return size(stats) / 2; }

Count count(const BatchStatsOp&, const Types& in, const Types& out) { return two_moments(size(in[0]), stat_cells(out[0])); }
Count count(const RunningStatsOp&, const Types&, const Types&) { return nothing(); }
Count count(const RunningUpdateOp&, const Types& in, const Types&) { return elementwise(7 * size(in[0]), 3); }
Count count(const BatchNormalizeOp&, const Types& in, const Types&) { return elementwise(2 * size(in[0]) + 5 * size(in[2]), 6); }
Count count(const BatchNormGradSumsOp&, const Types& in, const Types& out) {
    Count c = reduction(2 * size(in[0]), 2 * size(out[0]), log2_up(numel(in[0].shape) / numel(out[0].shape)));
    c.elementwise = 2 * size(in[0]) + 3 * size(out[0]);
    c.chain = 3;
    return c;
}
Count count(const BatchNormGradInputOp&, const Types& in, const Types&) { return elementwise(4 * size(in[0]) + 8 * size(in[3]), 6); }
Count count(const BatchNormFixedGradInputOp&, const Types& in, const Types&) { return elementwise(size(in[0]) + 3 * size(in[2]), 4); }

Count count(const CellStatsOp&, const Types& in, const Types& out) { return two_moments(size(in[0]), stat_cells(out[0])); }
Count count(const CellNormalizeOp&, const Types& in, const Types&) { return elementwise(4 * size(in[0]) + 2 * stat_cells(in[1]), 6); }
Count count(const CellNormGradAffineOp&, const Types& in, const Types& out) {
    Count c = reduction(2 * size(in[0]), 2 * size(out[0]), log2_up(numel(in[0].shape) / numel(out[0].shape)));
    c.elementwise = 3 * size(in[0]) + 2 * stat_cells(in[2]);
    c.chain = 5;
    return c;
}
Count count(const CellNormGradSumsOp&, const Types& in, const Types& out) {
    const double cells = stat_cells(out[0]);
    Count c = reduction(2 * size(in[0]), 2 * cells, log2_up(static_cast<int64_t>(size(in[0]) / cells)));
    c.elementwise = 4 * size(in[0]) + 2 * cells;
    c.chain = 6;
    return c;
}
Count count(const CellNormGradInputOp&, const Types& in, const Types&) { return elementwise(7 * size(in[0]) + 4 * stat_cells(in[2]), 7); }

Count lrn(double elements, int64_t window, double passes) {
    return {.combining = passes * elements * static_cast<double>(window - 1),
            .elementwise = passes * 5 * elements,
            .tree = passes * log2_up(window),
            .chain = passes * 5};
}
Count count(const LrnOp& op, const Types& in, const Types&) { return lrn(size(in[0]), op.size, 1); }
Count count(const LrnGradOp& op, const Types& in, const Types&) { return lrn(size(in[0]), op.size, 2); }

// --- Elementwise: an activation is one operation, whatever its function ---

Count count(const UnaryOp&, const Types& in, const Types&) { return elementwise(size(in[0])); }
Count count(const UnaryGradOp&, const Types& in, const Types&) { return elementwise(size(in[0])); }
Count count(const PointwiseOp&, const Types& in, const Types&) { return elementwise(size(in[0])); }
Count count(const PointwiseGradOp&, const Types& in, const Types&) { return elementwise(size(in[0])); }
Count count(const PReluOp&, const Types& in, const Types&) { return elementwise(size(in[0])); }
Count count(const PReluGradInputOp&, const Types& in, const Types&) { return elementwise(size(in[0])); }
Count count(const PReluGradSlopeOp&, const Types& in, const Types& out) {
    Count c = reduction(in[0], out[0]);
    c.elementwise = size(in[0]);
    c.chain = 1;
    return c;
}

// The largest, the exponentials, their sum, the quotients.
Count softmax(const ValueType& x, int axis) {
    const double length = static_cast<double>(x.shape[axis]), rows = size(x) / length;
    return {.combining = 2 * (size(x) - rows), .elementwise = 3 * size(x), .tree = 2 * log2_up(x.shape[axis]), .chain = 3};
}
Count count(const SoftmaxOp& op, const Types& in, const Types&) { return softmax(in[0], op.axis); }
Count count(const SoftmaxGradOp& op, const Types& in, const Types&) {
    const double rows = size(in[0]) / static_cast<double>(in[0].shape[op.axis]);
    return {.combining = size(in[0]) - rows, .elementwise = 3 * size(in[0]), .tree = log2_up(in[0].shape[op.axis]), .chain = 3};
}

Count count(const LogSoftmaxOp& op, const Types& in, const Types&) { return softmax(in[0], op.axis); }
Count count(const LogSoftmaxGradOp& op, const Types& in, const Types&) {
    const double rows = size(in[0]) / static_cast<double>(in[0].shape[op.axis]);
    return {.combining = size(in[0]) - rows, .elementwise = 3 * size(in[0]), .tree = log2_up(in[0].shape[op.axis]), .chain = 3};
}

Count count(const DropoutOp&, const Types& in, const Types&) { return elementwise(size(in[0])); }
Count count(const AddOp&, const Types& in, const Types&) {
    return elementwise(size(in[0]) * static_cast<double>(in.size() - 1), log2_up(static_cast<int64_t>(in.size())));
}
Count count(const MulOp&, const Types& in, const Types&) { return elementwise(size(in[0])); }
Count count(const ScaleOp&, const Types& in, const Types&) { return elementwise(size(in[0])); }
Count count(const ExpandOp&, const Types&, const Types&) { return nothing(); }
Count count(const SumToOp&, const Types& in, const Types& out) { return reduction(in[0], out[0]); }

Count count(const ConcatOp&, const Types&, const Types&) { return nothing(); }
Count count(const SliceOp&, const Types&, const Types&) { return nothing(); }
Count count(const PadOp&, const Types&, const Types&) { return nothing(); }
Count count(const ReshapeOp&, const Types&, const Types&) { return nothing(); }
Count count(const TransposeOp&, const Types&, const Types&) { return nothing(); }

// --- Losses ---

Count count(const CrossEntropyOp&, const Types& in, const Types&) {
    Count c = softmax(in[0], 1);
    c.combining += size(in[1]) - 1;
    c.tree += log2_up(numel(in[1].shape));
    return c;
}
Count count(const CrossEntropyGradOp&, const Types& in, const Types&) {
    Count c = softmax(in[0], 1);
    c.elementwise += 2 * size(in[0]);
    c.chain += 2;
    return c;
}
Count count(const NllOp&, const Types& in, const Types&) { return elementwise(size(in[1])); }
Count count(const NllGradOp&, const Types& in, const Types&) { return elementwise(size(in[0])); }
Count count(const TargetWeightOp&, const Types& in, const Types& out) { return reduction(in[0], out[0]); }
Count count(const ErrorLossOp&, const Types& in, const Types& out) {
    Count c = reduction(in[0], out[0]);
    c.elementwise = 2 * size(in[0]) + 1;
    c.chain = 3;
    return c;
}
Count count(const ErrorLossGradOp&, const Types& in, const Types&) { return elementwise(2 * size(in[0]), 2); }
Count count(const CorrectOp&, const Types& in, const Types& out) {
    Count c = reduction(in[0], out[0]);  // the comparisons of each row, then the sum over rows
    c.elementwise = size(in[1]);
    c.chain = 1;
    return c;
}

// --- Update: operations per element, as the rules are written ---

Count count(const SquaredNormOp&, const Types& in, const Types&) { return {.products = size(in[0]), .tree = log2_up(numel(in[0].shape))}; }
Count count(const ClipScaleOp&, const Types&, const Types&) { return elementwise(4, 4); }

double operations_of(Rule rule) {
    switch (rule) {
        case Rule::Sgd: return 2;
        case Rule::Momentum: return 4;
        case Rule::Nesterov: return 6;
        case Rule::AdaGrad: return 7;
        case Rule::RmsProp: return 11;
        case Rule::Adam:
        case Rule::AdamW: return 13;
        case Rule::Lars: return 5;
        case Rule::Lamb: return 12;
    }
    return 0;
}
Count count(const UpdateRule& rule, bool clipped, double elements) {
    const double operations = operations_of(rule.rule) + (rule.weight_decay != 0 ? 2 : 0) + (clipped ? 1 : 0);
    return elementwise(operations * elements, operations);
}
Count count(const UpdateOp& op, const Types& in, const Types&) { return count(op.rule, op.clipped, size(in[0])); }
Count count(const LambDirectionOp& op, const Types& in, const Types&) { return count(op.rule, op.clipped, size(in[0])); }
Count count(const LambApplyOp&, const Types& in, const Types&) { return elementwise(2 * size(in[0]) + 4, 6); }

// --- Between ranks ---

Count count(const PackOp&, const Types&, const Types&) { return {}; }
Count count(const UnpackOp&, const Types&, const Types&) { return {}; }
Count count(const MergeStatsOp&, const Types& in, const Types& out) { return reduction(in[0], out[0]); }

// Named apart from `count`: an op without its own overload would otherwise convert to Op and call this again.
Count count_op(const Op& op, const Types& in, const Types& out) {
    return std::visit([&](const auto& o) { return count(o, in, out); }, op);
}

// A slice reads only what it keeps, and a reshape is another view of the same elements.
double moved(const Op& op, const Types& in, const Types& out) {
    if (std::holds_alternative<ReshapeOp>(op)) return 0;
    if (std::holds_alternative<SliceOp>(op)) return 2 * size(out[0]);
    double sum = 0;
    for (const auto& t : in) sum += size(t);
    for (const auto& t : out) sum += size(t);
    return sum;
}

Types types_of(const Graph& graph, const std::vector<ValueId>& values) {
    Types types;
    for (const ValueId v : values) types.push_back(graph.value(v).type);
    return types;
}

}  // namespace

Cost cost_of(const Op& op, const std::vector<ValueType>& inputs, const std::vector<ValueType>& outputs) {
    const Count c = count_op(op, inputs, outputs);
    return {.work = 2 * c.products + c.combining + c.elementwise, .depth = c.tree + c.chain, .moved = moved(op, inputs, outputs)};
}

Cost cost_of(const Graph& graph, const Node& node) { return cost_of(node.op, types_of(graph, node.inputs), types_of(graph, node.outputs)); }

WorkDepth work_depth(const Graph& graph) {
    WorkDepth total;
    std::vector<double> depth(graph.values().size(), 0);  // of the longest path to each value
    for (const Node& node : graph.nodes()) {
        const Count c = count_op(node.op, types_of(graph, node.inputs), types_of(graph, node.outputs));
        double reached = 0;
        for (const ValueId v : node.inputs) reached = std::max(reached, depth[static_cast<size_t>(v)]);
        reached += c.tree;
        for (const ValueId v : node.outputs) depth[static_cast<size_t>(v)] = reached;
        total.work += c.products + c.combining;
        total.depth = std::max(total.depth, reached);
    }
    return total;
}

}  // namespace convoy
