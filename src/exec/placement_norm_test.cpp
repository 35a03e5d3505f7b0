// Batch norm of each rank's own part is not what one process computes; it is what one process computes that has this part alone. Nets without halos, so that
// parts have nothing to do with each other until their gradients are added up.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/test_count.h"
#include "exec/placement_testing.h"
#include "model/autodiff.h"
#include "model/builder.h"
#include "program/plan_spec.h"

namespace convoy {
namespace {

constexpr double kMomentum = 0.1;
constexpr int64_t kClasses = 3;
const std::vector<std::string> kNorms{"bn1", "bn2"};

// Two norms between 1x1 convolutions, and a class for every position. The output "logits" is there to be looked at.
Graph net_of(const Shape& input) {
    Builder b(Mode::Training);
    const auto one = Dims::filled(input.size() - 2, 1);
    ValueId x = b.conv("conv1", b.input(input), {.filters = 4, .kernel = one, .bias = false});
    x = b.unary("tanh", b.batch_norm("bn1", x, 1e-5, kMomentum), Unary::Tanh);
    x = b.relu("relu", b.batch_norm("bn2", b.conv("conv2", x, {.filters = 3, .kernel = one}), 1e-5, kMomentum));
    b.graph().add_output("out", b.conv("head", x, {.filters = kClasses, .kernel = one}));
    Graph graph = training_graph({"norms", b.take(), {{.output = "out"}}, kClasses}, {.rule = {.rule = Rule::Sgd}}, {});
    for (const Node& node : graph.nodes())
        if (node.layer == "head" && node.phase == Phase::Forward && std::holds_alternative<BiasOp>(node.op))
            graph.add_output("logits", node.outputs[0]);
    return graph;
}

// What a rank has, and what one process makes of that alone.
struct Part {
    Box box;           // of the input
    double share = 0;  // of all positions
    Tensor logits;     // of the rank
    Truth alone;
};

Box spatial_of(const Box& box, int64_t channels) {
    Box all = box;
    all.origin[1] = 0;
    all.shape[1] = channels;
    return all;
}

Box target_of(const Box& box) { return {join({box.origin[0]}, box.origin.slice(2)), join({box.shape[0]}, box.shape.slice(2))}; }

// sum over the parts of share * f(part)
Tensor weighed(const std::vector<Part>& parts, const std::function<Tensor(const Part&)>& f) {
    Tensor sum;
    for (const Part& part : parts) {
        const Tensor t = f(part);
        if (&part == &parts.front()) sum = Tensor(t.shape(), DType::f64);
        for (int64_t i = 0; i < t.numel(); ++i) sum.as<double>()[static_cast<size_t>(i)] += part.share * element(t, i);
    }
    return sum;
}

Tensor mapped(const Tensor& a, const std::function<double(double)>& f) {
    Tensor result = a;
    for (double& x : result.as<double>()) x = f(x);
    return result;
}

Tensor sum_of(const Tensor& a, const Tensor& b, double factor) {
    Tensor result = a;
    for (int64_t i = 0; i < a.numel(); ++i) result.as<double>()[static_cast<size_t>(i)] += factor * element(b, i);
    return result;
}

// The statistics of all positions together, from the running statistics of the parts after one step from 0 and 1.
struct Running {
    Tensor mean, variance;
};
Running merged(const std::vector<Part>& parts, const std::string& norm, double positions) {
    const auto mean_of = [&](const Part& p) {
        return mapped(p.alone.states.at(norm + ".running_mean"), [](double x) { return x / kMomentum; });
    };
    const auto square_of = [&](const Part& p) {  // the mean square
        const double count = p.share * positions;
        const Tensor variance = mapped(p.alone.states.at(norm + ".running_var"),
                                       [&](double x) { return (x - (1 - kMomentum)) / kMomentum * (count - 1) / count; });
        return sum_of(variance, mapped(mean_of(p), [](double m) { return m * m; }), 1);
    };
    const Tensor mean = weighed(parts, mean_of);
    const Tensor variance = sum_of(weighed(parts, square_of), mapped(mean, [](double m) { return m * m; }), -1);
    return {mapped(mean, [](double m) { return kMomentum * m; }),
            mapped(variance, [&](double v) { return (1 - kMomentum) + kMomentum * v * positions / (positions - 1); })};
}

void expect_parts(const std::string& spec, const Shape& input) {
    const std::string what = fmt::format("{} of {}", spec, to_string(input));
    const Graph graph = net_of(input);
    Plan plan = plan_from_spec(spec, 0, graph).plan;
    for (LayerPlan& entry : plan.layers) entry.global_norm = false;
    const Feeds feeds = feeds_for(graph, kClasses);
    const auto positions = static_cast<double>(numel(input) / input[1]);

    std::vector<Part> parts(static_cast<size_t>(ranks_of(plan)));
    std::map<std::string, Tensor> states;
    Tensor loss;
    on_ranks(graph, plan, feeds, {}, [&](Rank rank, Executor& executor, Session& session) {
        Part& mine = parts[static_cast<size_t>(rank)];
        std::map<std::string, Tensor> own;
        for (const auto& state : session.state().specs()) own[state.name] = session.state().read(state.name);
        for (const auto& [name, slot] : executor.program().outputs) {
            const TensorDesc& desc = executor.program().slot(slot).desc;
            if (name == "logits") {
                mine.box = spatial_of({desc.origin, desc.shape}, input[1]);
                mine.logits = executor.read(slot);
            }
            if (name == "loss" && rank == 0) loss = executor.read(slot);
        }
        if (rank == 0) states = std::move(own);
    });

    std::erase_if(parts, [](const Part& part) { return numel(part.box.shape) == 0; });
    double shares = 0;
    for (Part& part : parts) {
        const Graph own = net_of(part.box.shape);
        Feeds fed = feeds;
        fed["input"] = part_of(feeds.at("input"), part.box);
        fed["target"] = part_of(feeds.at("target"), target_of(part.box));
        part.alone = one_process(own, fed, 1);
        part.share = static_cast<double>(numel(target_of(part.box).shape)) / positions;
        shares += part.share;
        EXPECT_LE(relative_error(part.logits, part.alone.outputs.at("logits")), 1e-9) << what;
    }
    ASSERT_NEAR(shares, 1, 1e-12) << what;
    EXPECT_LE(relative_error(loss, weighed(parts, [](const Part& p) { return p.alone.outputs.at("loss"); })), 1e-9) << what;

    // Sgd is linear: what all parts together change is what each changes alone, by its share.
    for (const auto& [name, found] : states) {
        if (name.find(".running_") != std::string::npos) continue;
        const Tensor expected = weighed(parts, [&, n = name](const Part& p) { return p.alone.states.at(n); });
        EXPECT_LE(relative_error(found, expected), 1e-9) << name << ", " << what;
    }
    for (const std::string& norm : kNorms) {
        const Running all = merged(parts, norm, positions);
        EXPECT_LE(relative_error(states.at(norm + ".running_mean"), all.mean), 1e-9) << norm << ", " << what;
        EXPECT_LE(relative_error(states.at(norm + ".running_var"), all.variance), 1e-9) << norm << ", " << what;
    }

    // And it is something else than the whole.
    if (parts.size() == 1) return;
    EXPECT_GT(relative_error(loss, one_process(graph, feeds, 1).outputs.at("loss")), 1e-6) << what;
}

TEST(LocalBatchNorm, EachPartIsThatOfOneProcessWithThisPartAlone) {
    for (const char* spec : {"sample:1", "sample:2", "sample:3", "height:2", "width:3", "height:2,width:2", "sample:2,height:2"})
        for (const Shape& input : {Shape{4, 3, 6, 6}, Shape{5, 2, 7, 5}}) expect_parts(spec, input);
    expect_parts("depth:2", {2, 2, 5, 3, 4});
    expect_parts("sample:2,depth:2,height:2", {3, 2, 3, 5, 4});
}

TEST(LocalBatchNorm, RandomShapesAndGrids) {
    std::mt19937 random(7);
    const auto between = [&](int64_t lo, int64_t hi) { return std::uniform_int_distribution<int64_t>(lo, hi)(random); };
    for (int i = 0; i < test_count(20, 200); ++i) {
        const Shape input{between(2, 6), between(1, 4), between(4, 8), between(4, 8)};
        const int64_t samples = between(1, std::min<int64_t>(3, input[0])), rows = between(1, 3),
                      columns = between(1, samples * rows > 4 ? 1 : 2);
        expect_parts(fmt::format("sample:{},height:{},width:{}", samples, rows, columns), input);
    }
}

}  // namespace
}  // namespace convoy
