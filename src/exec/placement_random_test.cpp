// Random graphs under random plans, on one to eight ranks: uneven sizes, ranks without rows, every op and every kind of split.
#include <gtest/gtest.h>

#include <functional>
#include <iostream>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "base/test_count.h"
#include "exec/placement_testing.h"
#include "model/autodiff.h"
#include "model/builder.h"
#include "program/placed_graph.h"
#include "program/plan_spec.h"
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
    explicit RandomNet(Draw& draw) : draw_(draw), rank_(static_cast<int>(draw.between(1, 3))) {}

    Model make() {
        const int64_t most = rank_ == 3 ? 6 : 9;
        ValueId x = b_.input(join({draw_.between(1, 5), draw_.between(1, 6)}, draw_.dims(rank_, 3, most)));
        const int64_t layers = draw_.between(2, 6);
        for (int64_t made = 0, tries = 0; made < layers && tries < 40; ++tries) {
            try {
                const ValueId y = layer("l" + std::to_string(tries), x);
                if (numel(b_.shape(y)) > 6000 || numel(b_.shape(y)) == 0) continue;
                x = y;
                ++made;
            } catch (const Error&) {  // this layer does not fit this shape; another may
            }
        }
        return finish(x);
    }

  private:
    Dims spatial(ValueId x) const { return b_.shape(x).slice(2); }

    ValueId layer(const std::string& name, ValueId x) {
        const Shape shape = b_.shape(x);
        const int64_t channels = shape[1];
        switch (draw_.between(0, 21)) {
            case 0:
            case 1:
            case 2: return conv(name, x);
            case 3: {
                const Dims kernel = draw_.dims(rank_, 1, 3), stride = draw_.dims(rank_, 1, 2);
                return b_.conv_transpose(name, x,
                                         {.filters = draw_.between(1, 5), .kernel = kernel, .stride = stride, .bias = draw_.coin()});
            }
            case 4:
                return b_.local_conv(name, x, {.filters = draw_.between(1, 4), .kernel = draw_.dims(rank_, 1, 3), .bias = draw_.coin()});
            case 5: return b_.max_pool(name, draw_.coin() ? b_.unary(name + ".activation", x, Unary::Relu) : x, pool());
            case 6: return b_.average_pool(name, x, pool());
            case 7: return b_.adaptive_pool(name, x, draw_.dims(rank_, 1, 4));
            case 8: return b_.batch_norm(name, x);
            case 9: return b_.group_norm(name, x, channels % 2 == 0 ? 2 : 1);
            case 10: return b_.layer_norm(name, x, static_cast<int>(draw_.between(1, 2)));
            case 11: return b_.lrn(name, x, {.size = 3});
            case 12: {
                static const std::vector<Unary> kinds{Unary::Relu, Unary::LeakyRelu, Unary::Sigmoid, Unary::Tanh, Unary::Gelu, Unary::Silu};
                return b_.unary(name, x, draw_.of(kinds), 0.1);
            }
            case 13: return b_.prelu(name, x, draw_.coin());
            case 14: return b_.softmax(name, x, 1);
            case 15: return b_.dropout(name, x, 0.4);
            case 16: {
                const ValueId side = b_.conv(name + ".side", x, {.filters = channels, .kernel = Dims::filled(rank_, 1), .bias = false});
                return draw_.coin() ? b_.add(name, {x, side}) : b_.mul(name, x, side);
            }
            case 17: return b_.concat(name, {x, b_.unary(name + ".side", x, Unary::Tanh)}, static_cast<int>(draw_.between(1, 1 + rank_)));
            case 18: {
                Dims start = Dims::filled(shape.size(), 0), size = shape;
                const int d = static_cast<int>(draw_.between(1, rank_ + 1));
                size[d] = draw_.between(1, shape[d]);
                start[d] = draw_.between(0, shape[d] - size[d]);
                return b_.slice(name, x, start, size);
            }
            case 19: {
                Dims lo = Dims::filled(shape.size(), 0), hi = lo;
                for (int d = 2; d < shape.size(); ++d) lo[d] = draw_.between(0, 2), hi[d] = draw_.between(0, 2);
                return b_.pad(name, x, lo, hi, 0.5);
            }
            case 20: {
                Dims order = Dims::filled(shape.size(), 0);
                for (int d = 0; d < shape.size(); ++d) order[d] = d;
                std::swap(order[2], order[rank_ + 1]);
                return b_.transpose(name, x, order);
            }
            default: {
                Dims out = spatial(x);
                for (auto& v : out) v = draw_.between(v, 2 * v);
                const bool linear = draw_.coin();
                return b_.upsample(name, x, out, linear ? Resample::Linear : Resample::Nearest, linear && draw_.coin());
            }
        }
    }

    ValueId conv(const std::string& name, ValueId x) {
        const int64_t channels = b_.shape(x)[1];
        const int64_t groups = draw_.coin(0.3) ? (draw_.coin() ? channels : std::max<int64_t>(1, channels / 2)) : 1;
        return b_.conv(name, x,
                       {.filters = groups * draw_.between(1, groups > 1 ? 2 : 6),
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
        if (draw_.coin(0.3)) {  // a class for every position
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

    Draw& draw_;
    int rank_;
    int64_t classes_ = 2;
    Builder b_{Mode::Training};
};

Graph training_of(const Model& model, Draw& draw) {
    static const std::vector<Rule> rules{Rule::Sgd,  Rule::Momentum, Rule::Nesterov, Rule::AdaGrad, Rule::RmsProp,
                                         Rule::Adam, Rule::AdamW,    Rule::Lars,     Rule::Lamb};
    // A large epsilon: adaptive rules would otherwise divide gradients that are only rounding by their own size.
    return training_graph(model,
                          {.rule = {.rule = draw.of(rules), .epsilon = 1e-2, .weight_decay = 1e-3}, .clip_norm = draw.coin(0.3) ? 0.5 : 0},
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
    static const std::vector<std::string> names{"a", "b", "c"};
    std::vector<Axis> axes;
    for (size_t i = 0; i < sizes.size(); ++i) axes.push_back({names[i], sizes[i]});
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
        if (draw.coin(0.2)) entry.state_axis = 0;
        plan.layers.push_back(entry);
    }
    plan.layers.push_back({.grid = static_cast<int>(draw.between(0, grids - 1))});
    return plan;
}

// LAMB gives every step the length of its weight, also where the gradient is zero but for rounding (a bias under a norm): no two ways of computing agree there.
bool lamb_on_rounding(const Graph& graph, const Truth& truth) {
    for (const Node& node : graph.nodes()) {
        if (!std::holds_alternative<LambDirectionOp>(node.op)) continue;
        const Tensor& mean = truth.states.at(graph.value(node.inputs[3]).name);
        if (relative_error(mean, Tensor(mean.shape(), DType::f64), 1) < 1e-9) return true;
    }
    return false;
}

// op -> what axes did to it -> how often
using Coverage = std::map<std::string, std::map<std::string, int>>;

void count(Coverage& coverage, const Graph& graph, const Plan& plan) {
    const PlacedGraph placed = place(graph, plan);
    for (const PlacedNode& p : placed.nodes) {
        if (p.node == kNone) {
            ++coverage["(moves)"][std::string(name_of(p.move.kind))];
            continue;
        }
        const Node& node = graph.node(p.node);
        std::vector<ValueType> in, out;
        for (const ValueId v : node.inputs) in.push_back(graph.value(v).type);
        for (const ValueId v : node.outputs) out.push_back(graph.value(v).type);
        const Signature signature = signature_of(node.op, in, out);
        std::set<std::string> kinds;
        const auto look = [&](const std::vector<int>& values, const std::vector<DimRoles>& roles) {
            for (size_t i = 0; i < values.size(); ++i)
                for (const DimSplit& s : placed.values[static_cast<size_t>(values[i])].distribution.splits)
                    if (const int label = roles[i][static_cast<size_t>(s.dim)].label; label != kNone)
                        kinds.insert(signature.labels[static_cast<size_t>(label)].name);
        };
        look(p.inputs, signature.inputs);
        look(p.outputs, signature.outputs);
        if (kinds.empty()) kinds.insert("whole");
        for (const auto& kind : kinds) ++coverage[std::string(name_of(node.op))][kind];
    }
}

TEST(RandomPlacement, ComputesWhatOneProcessComputes) {
    Coverage coverage;
    const int cases = test_count(150, 2000);
    const char* const only = std::getenv("CONVOY_TEST_CASE");  // to look at one
    for (int i = only ? std::atoi(only) : 0; i < (only ? std::atoi(only) + 1 : cases); ++i) {
        Draw draw(static_cast<uint32_t>(1000 + i));
        const Model model = RandomNet(draw).make();
        const Graph graph = training_of(model, draw);
        const Plan plan = random_plan(draw, graph);
        const Feeds feeds = feeds_for(graph, model.classes);
        SCOPED_TRACE("case " + std::to_string(i));
        if (only) std::cout << listing(place(graph, plan), graph, plan);
        const Truth truth = one_process(graph, feeds, 1);
        if (lamb_on_rounding(graph, truth)) continue;
        Worst worst;
        ASSERT_NO_THROW(worst = compare(graph, plan, feeds, truth, 1)) << to_json(plan).dump();
        ASSERT_LE(worst.error, 1e-9) << worst.name << " under " << to_json(plan).dump();
        count(coverage, graph, plan);
    }
    if (only) return;
    std::string table;
    for (const auto& [op, kinds] : coverage) {
        table += fmt::format("{:<28}", op);
        for (const auto& [kind, times] : kinds) table += fmt::format(" {} {}", kind, times);
        table += "\n";
    }
    std::cout << table;
    EXPECT_GE(coverage.size(), 55u) << "not every op was placed";
    for (const char* kind : {"sample", "channel", "filter", "group", "depth", "height", "width"})
        EXPECT_GT(coverage["conv"][kind], 0) << kind;
}

}  // namespace
}  // namespace convoy
