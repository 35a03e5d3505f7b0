#include "exec/placement_cases.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>
#include <set>

#include "base/error.h"
#include "model/autodiff.h"
#include "model/builder.h"
#include "program/signature.h"

namespace convoy {
namespace {

class Draw {
  public:
    explicit Draw(uint32_t seed) : random_(seed) {}
    int64_t between(int64_t lo, int64_t hi) { return std::uniform_int_distribution<int64_t>(lo, hi)(random_); }
    bool coin(double p = 0.5) { return std::bernoulli_distribution(p)(random_); }
    template <class T>
    const T& of(const std::vector<T>& list) {
        return list[static_cast<size_t>(between(0, static_cast<int64_t>(list.size()) - 1))];
    }
    Dims dims(int count, int64_t lo, int64_t hi) {
        Dims d;
        for (int i = 0; i < count; ++i) d.push_back(between(lo, hi));
        return d;
    }

  private:
    std::mt19937 random_;
};

// A network of a few random layers that fit on each other.
class RandomNet {
  public:
    static constexpr int kKinds = 26;  // of layers

    // With more volumes than other shapes: they can be split in most ways.
    RandomNet(Draw& draw, Mode mode) : draw_(draw), rank_(static_cast<int>(std::min<int64_t>(3, draw.between(1, 4)))), b_(mode) {}

    // A layer of this kind is among the first two, if it fits.
    Model make(int kind, bool after_convolution) {
        const int64_t most = rank_ == 3 ? 6 : 9;
        ValueId x = b_.input(join({draw_.between(1, 5), draw_.between(1, 6)}, draw_.dims(rank_, 3, most)));
        std::vector<int> wanted{kind};
        if (after_convolution) wanted.push_back(0);
        const int64_t layers = draw_.between(2, 6);
        int refused = 0;
        for (int64_t made = 0, tries = 0; made < layers && tries < 40; ++tries) {
            const bool asked = !wanted.empty();
            const int next = asked ? wanted.back() : any_kind();
            bool fits = false;
            try {
                const ValueId y = layer("l" + std::to_string(tries), x, next);
                fits = numel(b_.shape(y)) > 0 && numel(b_.shape(y)) <= 6000;
                if (fits) x = y, ++made;
            } catch (const Error&) {  // this layer does not fit this shape; another may
            }
            if (asked && (fits || ++refused % 5 == 0)) wanted.pop_back();
        }
        return finish(x);
    }

  private:
    // Layers with weights more often than others: all else follows them.
    int any_kind() {
        static const std::vector<int> often{0, 0, 1, 2};
        return draw_.coin(0.15) ? draw_.of(often) : static_cast<int>(draw_.between(0, kKinds - 1));
    }

    Dims spatial(ValueId x) const { return b_.shape(x).slice(2); }

    ValueId layer(const std::string& name, ValueId x, int kind) {
        const Shape shape = b_.shape(x);
        const int64_t channels = shape[1];
        switch (kind) {
            case 0: return conv(name, x);
            case 1: {
                const int64_t groups = draw_.coin(0.2) ? channels : 1, filters = groups * draw_.between(1, groups > 1 ? 2 : 5);
                const Dims kernel = draw_.dims(rank_, 1, 3), stride = draw_.dims(rank_, 1, 2);
                return b_.conv_transpose(name, x,
                                         {.filters = filters, .kernel = kernel, .stride = stride, .groups = groups, .bias = draw_.coin()});
            }
            case 2:
                return b_.local_conv(name, x, {.filters = draw_.between(1, 4), .kernel = draw_.dims(rank_, 1, 3), .bias = draw_.coin()});
            case 3: return max_pool(name, x);
            case 4: return b_.average_pool(name, x, pool());
            case 5: return b_.adaptive_pool(name, x, draw_.dims(rank_, 1, 4));
            case 6: return b_.batch_norm(name, x);
            case 7: return b_.group_norm(name, x, channels % 2 == 0 ? 2 : 1);
            case 8: return b_.layer_norm(name, x, static_cast<int>(draw_.between(1, 2)));
            case 9: return b_.lrn(name, x, {.size = 3});
            case 10: {
                static const std::vector<Unary> kinds{Unary::Relu, Unary::LeakyRelu, Unary::Sigmoid, Unary::Tanh, Unary::Gelu, Unary::Silu};
                return b_.unary(name, x, draw_.of(kinds), 0.1);
            }
            case 11: return b_.prelu(name, x, draw_.coin());
            case 12: return b_.softmax(name, x, any_but_samples());
            case 13: return b_.graph().add1(LogSoftmaxOp{any_but_samples()}, {x}, name);
            case 14: return b_.dropout(name, x, 0.4);
            case 15: {
                const ValueId side = b_.conv(name + ".side", x, {.filters = channels, .kernel = Dims::filled(rank_, 1), .bias = false});
                return draw_.coin() ? b_.add(name, {x, side}) : b_.mul(name, x, side);
            }
            case 16: return b_.concat(name, {x, b_.unary(name + ".side", x, Unary::Tanh)}, any_but_samples());
            case 17: {
                Dims start = Dims::filled(shape.size(), 0), size = shape;
                const int d = any_but_samples();
                size[d] = draw_.between(1, shape[d]);
                start[d] = draw_.between(0, shape[d] - size[d]);
                return b_.slice(name, x, start, size);
            }
            case 18: {
                Dims lo = Dims::filled(shape.size(), 0), hi = lo;
                for (int d = 2; d < shape.size(); ++d) lo[d] = draw_.between(0, 2), hi[d] = draw_.between(0, 2);
                return b_.pad(name, x, lo, hi, 0.5);
            }
            case 19: {
                Dims order = Dims::filled(shape.size(), 0);
                for (int d = 0; d < shape.size(); ++d) order[d] = d;
                std::swap(order[2], order[rank_ + 1]);
                return b_.transpose(name, x, order);
            }
            case 20: {
                Dims out = spatial(x);
                for (auto& v : out) v = draw_.between(v, 2 * v);
                const bool linear = draw_.coin();
                return b_.upsample(name, x, out, linear ? Resample::Linear : Resample::Nearest, linear && draw_.coin());
            }
            case 21: {
                static const std::vector<PointwiseOp> kinds{
                    {Pointwise::Elu, 1},    {Pointwise::Softplus},    {Pointwise::Softsign},   {Pointwise::HardSigmoid, 0.2, 0.5},
                    {Pointwise::HardSwish}, {Pointwise::Clip, -1, 1}, {Pointwise::Shift, 0.3}, {Pointwise::Erf},
                    {Pointwise::Sin},       {Pointwise::Atan}};
                return b_.graph().add1(draw_.of(kinds), {x}, name);
            }
            case 22: return b_.graph().add1(ScaleOp{0.7}, {x}, name);
            case 23: {  // weighed by what is in each channel
                const ValueId mean = b_.adaptive_pool(name + ".mean", x, Dims::filled(rank_, 1));
                return b_.mul(name, x, b_.unary(name + ".gate", mean, Unary::Sigmoid));
            }
            case 24: {  // weighed by the mean along a dim, that of samples too
                Shape sums = shape;
                const auto d = static_cast<int>(draw_.between(0, rank_ + 1));
                sums[d] = 1;
                const ValueId sum = b_.graph().add1(SumToOp{sums}, {x}, name + ".sum");
                return b_.mul(name, x, b_.graph().add1(ScaleOp{1.0 / static_cast<double>(shape[d])}, {sum}, name + ".mean"));
            }
            default: return split_and_joined(name, x);
        }
    }

    int any_but_samples() { return static_cast<int>(draw_.between(1, 1 + rank_)); }

    // What an evaluation also gives: where the maxima were.
    ValueId max_pool(const std::string& name, ValueId x) {
        if (draw_.coin()) x = b_.unary(name + ".activation", x, Unary::Relu);
        const ValueId y = b_.max_pool(name, x, pool());
        const Node made = b_.graph().node(b_.graph().value(y).producer);
        const MaxIndexOp places{std::get<MaxPoolOp>(made.op).window, spatial(x), draw_.coin()};
        b_.graph().add_output("places." + name, b_.graph().add1(places, {made.outputs[1]}, name));
        return y;
    }

    // Dims put together and taken apart again.
    ValueId split_and_joined(const std::string& name, ValueId x) {
        const Shape shape = b_.shape(x);
        const ValueId flat = b_.unary(name + ".activation", b_.flatten(name + ".flatten", x), Unary::Tanh);
        return b_.reshape(name, flat, shape);
    }

    ValueId conv(const std::string& name, ValueId x) {
        const int64_t channels = b_.shape(x)[1];
        const int64_t groups = draw_.coin(0.3) ? (draw_.coin() ? channels : std::max<int64_t>(1, channels / 2)) : 1;
        return b_.conv(name, x,
                       {.filters = groups * draw_.between(1, groups > 1 || draw_.coin(0.2) ? 2 : 6),
                        .kernel = draw_.dims(rank_, 1, 4),
                        .stride = draw_.dims(rank_, 1, 3),
                        .dilation = draw_.dims(rank_, 1, 2),
                        .pad = draw_.dims(rank_, 0, 2),
                        .pad_hi = draw_.dims(rank_, 0, 2),
                        .groups = groups,
                        .bias = draw_.coin()});
    }

    PoolSpec pool() {
        return {.kernel = draw_.dims(rank_, 2, 3),
                .stride = draw_.dims(rank_, 1, 2),
                .pad = draw_.dims(rank_, 0, 1),
                .ceil = draw_.coin(),
                .count_padding = draw_.coin()};
    }

    Model finish(ValueId x) {
        LossTerm loss{.output = "out"};
        if (draw_.coin(0.15)) {
            x = likelihood(x);
            loss.kind = draw_.coin() ? LossKind::SquaredError : LossKind::AbsoluteError;
        } else if (draw_.coin(0.3)) {  // a class for every position
            classes_ = draw_.between(2, 5);
            x = b_.conv("head", x, {.filters = classes_, .kernel = Dims::filled(rank_, 1)});
            if (draw_.coin()) loss.class_weights = std::vector<double>(static_cast<size_t>(classes_), 0.7);
        } else {
            x = b_.flatten("flatten", x);
            classes_ = draw_.between(2, 7);
            x = b_.linear("head.0", x, {.outputs = draw_.between(1, 9)});
            x = b_.linear("head.1", b_.relu("head.relu", x), {.outputs = classes_});
            if (draw_.coin(0.3)) loss.kind = draw_.coin() ? LossKind::SquaredError : LossKind::AbsoluteError;
        }
        loss.label_smoothing = loss.kind == LossKind::CrossEntropy && draw_.coin() ? 0.1 : 0;
        b_.graph().add_output("out", x);
        return {"random", b_.take(), {loss}, classes_};
    }

    // The likelihood of a class at every position, as a network of another tool computes its own loss.
    ValueId likelihood(ValueId x) {
        classes_ = draw_.between(2, 5);
        x = b_.conv("head", x, {.filters = classes_, .kernel = Dims::filled(rank_, 1)});
        const Shape shape = b_.shape(x);
        Graph& graph = b_.graph();
        x = graph.add1(LogSoftmaxOp{1}, {x}, "likelihood");
        const ValueId labels = graph.add_input("labels", {join({shape[0]}, shape.slice(2)), Element::Index});
        std::vector<double> weights(static_cast<size_t>(classes_), 0.7);
        weights[0] = 1.2;
        const ValueId weight = graph.add_state({.name = "likelihood.class_weights",
                                                .shape = {classes_},
                                                .initializer = {.kind = Initializer::Kind::Values, .values = weights},
                                                .kind = StateKind::Buffer});
        const auto made = graph.add(NllOp{.ignored = draw_.coin(0.3) ? 1 : -1}, {x, labels, weight}, "likelihood");
        return draw_.coin() ? made[0] : b_.mul("likelihood.weighed", made[0], made[1]);
    }

    Draw& draw_;
    int rank_;
    int64_t classes_ = 2;
    Builder b_;
};

Graph training_of(const Model& model, Draw& draw, bool lamb) {
    static const std::vector<Rule> rules{Rule::Sgd,  Rule::Momentum, Rule::Nesterov, Rule::AdaGrad, Rule::RmsProp,
                                         Rule::Adam, Rule::AdamW,    Rule::Lars,     Rule::Lamb,    Rule::Lamb};
    const Rule drawn = draw.of(rules), rule = drawn == Rule::Lamb && !lamb ? Rule::Adam : drawn;
    // A large epsilon: adaptive rules would otherwise divide gradients that are only rounding by their own size.
    return training_graph(model, {.rule = {.rule = rule, .epsilon = 1e-2, .weight_decay = 1e-3}, .clip_norm = draw.coin(0.3) ? 0.5 : 0},
                          {.micro_batches = draw.coin(0.2) ? 2 : 1});
}

bool has_weights(const Op& op) {
    return std::holds_alternative<ConvOp>(op) || std::holds_alternative<ConvGradInputOp>(op) || std::holds_alternative<LinearOp>(op) ||
           std::holds_alternative<LocalConvOp>(op);
}

// A grid over some of `ranks`, in any order.
Grid random_grid(Draw& draw, int ranks) {
    static const std::vector<std::vector<int>> shapes{{1}, {2}, {3}, {4}, {2, 2}, {5}, {2, 3}, {6}, {7}, {2, 4}, {2, 2, 2}, {8}};
    std::vector<int> sizes;
    do sizes = draw.of(shapes);
    while (std::accumulate(sizes.begin(), sizes.end(), 1, std::multiplies<>()) > ranks);
    // What is given is cut along an axis that has the name of its label.
    std::vector<std::string> names{"sample", "depth", "height", "width", "channel", "a", "b"};
    std::vector<Axis> axes;
    for (const int size : sizes) {
        const std::string name = draw.of(names);
        std::erase(names, name);
        axes.push_back({name, size});
    }
    Grid grid = Grid::over(axes);
    std::vector<Rank> all;
    for (int r = 0; r < ranks; ++r) all.push_back(r);
    for (size_t i = 0; i < grid.ranks.size(); ++i) {
        const auto at = static_cast<size_t>(draw.between(static_cast<int64_t>(i), ranks - 1));
        std::swap(all[i], all[at]);
        grid.ranks[i] = all[i];
    }
    return grid;
}

// Every layer with weights splits a random label along each axis of a random grid; the rest follows.
Plan random_plan(Draw& draw, const Graph& graph) {
    const int ranks = static_cast<int>(draw.between(1, 8));
    Plan plan;
    const int grids = draw.coin(0.3) ? 2 : 1;
    for (int g = 0; g < grids; ++g) plan.grids.push_back(random_grid(draw, ranks));
    std::set<std::string> seen;
    for (const Node& node : graph.nodes()) {
        if (node.phase != Phase::Forward || !has_weights(node.op) || !seen.insert(node.layer).second) continue;
        LayerPlan entry{.layers = node.layer, .grid = static_cast<int>(draw.between(0, grids - 1))};
        const Grid& grid = plan.grids[static_cast<size_t>(entry.grid)];
        std::vector<ValueType> in, out;
        for (const ValueId v : node.inputs) in.push_back(graph.value(v).type);
        for (const ValueId v : node.outputs) out.push_back(graph.value(v).type);
        const Signature signature = signature_of(node.op, in, out);
        const auto at = [](const DimRoles& roles, int label) {
            const int dim = label < 0 ? kNone : dim_of(roles, label);
            return dim == kNone ? AxisPlacement{} : AxisPlacement{AxisPlacement::Kind::Split, dim};
        };
        for (size_t a = 0; a < grid.axes.size(); ++a) {
            const int label = static_cast<int>(draw.between(-1, static_cast<int64_t>(signature.labels.size()) - 1));
            entry.input.push_back(at(signature.inputs[0], label));
            entry.weight.push_back(at(signature.inputs[1], label));
            AxisPlacement y = at(signature.outputs[0], label);
            if (draw.coin(0.3)) y = {AxisPlacement::Kind::Split, static_cast<int>(draw.between(0, out[0].shape.size() - 1))};
            entry.output.push_back(y);
        }
        if (draw.coin()) entry.output.clear();
        if (draw.coin(0.4)) entry.state_axis = static_cast<int>(draw.between(0, static_cast<int64_t>(grid.axes.size()) - 1));
        plan.layers.push_back(entry);
    }
    plan.layers.push_back({.grid = static_cast<int>(draw.between(0, grids - 1))});
    return plan;
}

}  // namespace

PlacementCase placement_case(int number, bool lamb) {
    Draw draw(static_cast<uint32_t>(1000 + number));
    const int kind = number % RandomNet::kKinds, round = number / RandomNet::kKinds;
    // Norms that do not learn their statistics are trained through too.
    RandomNet net(draw, round % 4 == 0 ? Mode::Evaluation : Mode::Training);
    const Model model = net.make(kind, round % 2 == 0);
    PlacementCase result{.classes = model.classes};
    result.graph = number % 7 == 4 ? evaluation_graph(model) : training_of(model, draw, lamb);
    result.plan = random_plan(draw, result.graph);
    return result;
}

}  // namespace convoy
