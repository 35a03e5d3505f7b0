#include "plan/search.h"
#include "base/json.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/test_count.h"
#include "model/autodiff.h"
#include "model/builder.h"
#include "model/zoo.h"
#include "plan/roofline_target.h"
#include "plan/search_dp.h"
#include "plan/simulate.h"
#include "program/plan_spec.h"

namespace convoy {
namespace {

const Optimizer kMomentum{.rule = {.rule = Rule::Momentum}};

Graph zoo_graph(const char* model, const ModelOptions& options) { return training_graph(make_model(model, options), kMomentum); }

enum class Kind { Chain, Residual, Branches };

// Three layers with weights, one after the other, around a shortcut, or side by side.
Graph small_graph(Kind kind, int64_t batch, int64_t side, int64_t channels) {
    Builder b(Mode::Training);
    ValueId x = b.input({batch, channels, side, side});
    const auto conv = [&](const char* name, ValueId in, int64_t kernel) {
        return b.conv(name, in, {.filters = channels, .kernel = {kernel, kernel}, .pad = {kernel / 2, kernel / 2}, .bias = false});
    };
    x = b.relu("relu1", b.batch_norm("bn1", conv("conv1", x, 3)));
    if (kind == Kind::Chain)
        x = b.max_pool("pool", b.relu("relu2", conv("conv2", x, 3)), {.kernel = {2, 2}, .stride = {2, 2}});
    else if (kind == Kind::Residual)
        x = b.relu("relu2", b.add("add", {conv("conv2", x, 3), x}));
    else
        x = b.concat("concat", {conv("conv2", x, 3), conv("conv3", x, 1)});
    x = b.linear("fc", b.flatten("flatten", x), {.outputs = 10});
    Model model{"small", Graph(), {{.output = "prediction"}}, 10};
    b.graph().add_output("prediction", x);
    model.graph = b.graph();
    return training_graph(model, kMomentum);
}

struct Setting {
    Machine machine = machine_preset("v100");
    RooflineTarget target{machine.devices[0]};
};

TEST(Search, SplitsNothingOverANetworkThatIsTooSlow) {
    Machine machine = machine_preset("cpu10g");
    machine.nodes[0].devices = 1;
    machine.links[static_cast<size_t>(machine.network)].latency = 1;
    const RooflineTarget target{machine.devices[0]};
    const SearchResult result = search_plan(small_graph(Kind::Chain, 4, 16, 12), machine, target, {.ranks = 2});
    EXPECT_EQ(result.best.name, kUnsplit);
    EXPECT_EQ(result.best.waiting_seconds, 0);
}

// Ranks of few classes that wait with both queues, again and again: what each of them waits for is to be asked once, or this does not end.
TEST(Search, ThousandsOfRanksWithHalosAndGradients) {
    const Machine machine = machine_preset("v100");
    const RooflineTarget target{machine.devices[0]};
    const Graph graph = training_graph(make_model("cosmoflow512", {.batch = 64}), {.rule = {.rule = Rule::Momentum}});
    const SearchResult result = search_plan(graph, machine, target, {.ranks = 4096});
    EXPECT_TRUE(result.best.fits);
    EXPECT_LT(result.best.seconds, 0.1);
    EXPECT_GT(result.best.seconds, result.best.waiting_seconds);
}

TEST(Search, DynamicProgrammingFindsWhatTryingAllFinds) {
    const Setting s;
    const std::vector<std::vector<Axis>> grids{{{"a", 2}}, {{"a", 4}}, {{"a", 3}}};
    int cases = 0;
    for (const Kind kind : {Kind::Chain, Kind::Residual, Kind::Branches})
        for (const auto& axes : grids)
            for (const int64_t side : {8, 64})
                for (const SearchWeights weights :
                     {SearchWeights{}, SearchWeights{.gradient = 0.1}, SearchWeights{.gradient = 1, .memory = 1e-9}}) {
                    const Graph graph = small_graph(kind, 4, side, 12);
                    const SearchSpace space = search_space(graph);
                    const Grid grid = Grid::over(axes);
                    const CostModel cost(s.machine, {.ranks = grid.size()});
                    LocalKernels kernels(cost, s.target, DType::f32);
                    GridCosts costs(space, grid, kernels);
                    const Assignment best = best_assignment(space, costs, weights), all = best_by_trying_all(space, costs, weights);
                    EXPECT_TRUE(best.exact);
                    EXPECT_NEAR(weights.of(best.cost), weights.of(all.cost), 1e-9 * weights.of(all.cost));
                    ++cases;
                }
    EXPECT_EQ(cases, 54);
}

TEST(Search, DynamicProgrammingOnTwoAxes) {
    const Setting s;
    const Graph graph = small_graph(Kind::Residual, 4, 16, 8);
    const SearchSpace space = search_space(graph);
    ASSERT_EQ(space.free_ops(), 3U);
    const Grid grid = Grid::over({{"a", 2}, {"b", 2}});
    const CostModel cost(s.machine, {.ranks = 4});
    LocalKernels kernels(cost, s.target, DType::f32);
    GridCosts costs(space, grid, kernels);
    const Assignment best = best_assignment(space, costs, {}), all = best_by_trying_all(space, costs, {});
    EXPECT_TRUE(best.exact);
    EXPECT_NEAR(SearchWeights{}.of(best.cost), SearchWeights{}.of(all.cost), 1e-9 * all.cost.waits());
}

TEST(Search, SaysWhenSomethingWasLeftOut) {
    const Setting s;
    const Graph graph = small_graph(Kind::Branches, 4, 16, 8);
    const SearchSpace space = search_space(graph);
    const Grid grid = Grid::over({{"a", 2}, {"b", 2}});
    const CostModel cost(s.machine, {.ranks = 4});
    LocalKernels kernels(cost, s.target, DType::f32);
    GridCosts costs(space, grid, kernels);
    const Assignment narrow = best_assignment(space, costs, {}, {.choices = 96, .states = 2});
    EXPECT_FALSE(narrow.exact);
    EXPECT_GE(narrow.cost.waits() + narrow.cost.gradient + 1e-12, SearchWeights{}.of(best_assignment(space, costs, {}).cost));
}

TEST(Search, PlansMakeTheChoicesTheyWereMadeFrom) {
    const Setting s;
    const Graph graph = zoo_graph("lenet5", {.batch = 8});
    const SearchSpace space = search_space(graph);
    for (const std::vector<Axis>& axes : {std::vector<Axis>{{"a", 2}}, {{"a", 2}, {"b", 2}}}) {
        const Grid grid = Grid::over(axes);
        const CostModel cost(s.machine, {.ranks = grid.size()});
        LocalKernels kernels(cost, s.target, DType::f32);
        GridCosts costs(space, grid, kernels);
        const Assignment best = best_assignment(space, costs, {});
        const Plan plan = plan_of(space, grid, best.chosen);
        EXPECT_EQ(plan_from_json(Json::parse(to_json(plan).dump())), plan);
        auto back = choices_of(space, plan);
        ASSERT_TRUE(back);
        for (size_t i = 0; i < space.ops.size(); ++i) {
            if (!space.ops[i].free) continue;
            EXPECT_EQ((*back)[i], best.chosen[i]) << space.ops[i].layer;
        }
        EXPECT_DOUBLE_EQ(costs.evaluate(*back).waits(), best.cost.waits());
    }
}

TEST(Search, IsNeverPredictedSlowerThanTheKnownWays) {
    const Setting s;
    struct Case {
        const char* model;
        ModelOptions options;
        int ranks;
    };
    const std::vector<Case> cases{{"lenet5", {.batch = 8}, 2},
                                  {"lenet5", {.batch = 8}, 4},
                                  {"alexnet", {.batch = 16, .input = {3, 64, 64}, .classes = 10}, 4},
                                  {"resnet18", {.batch = 4, .input = {3, 32, 32}, .classes = 10}, 4},
                                  {"cosmoflow64", {.batch = 2, .input = {4, 16, 16, 16}}, 4}};
    const int count = test_count(4, static_cast<int>(cases.size()));
    for (int c = 0; c < count; ++c) {
        const Case& one = cases[static_cast<size_t>(c)];
        const Graph graph = zoo_graph(one.model, one.options);
        const SearchResult result = search_plan(graph, s.machine, s.target, {.ranks = one.ranks});
        ASSERT_TRUE(result.best.fits) << one.model;
        ASSERT_TRUE(result.data);
        EXPECT_FALSE(result.layers.empty());
        int known = 0;
        for (const ScoredPlan& plan : result.plans) {
            if (!plan.fits) continue;
            EXPECT_LE(result.best.seconds, plan.seconds) << one.model << " " << plan.name;
            known += plan.name.rfind("found", 0) != 0;
        }
        EXPECT_GE(known, 5) << one.model;
        for (const char* spec : {"data", "zero", "hybrid-fc"}) {
            const Plan plan = plan_from_spec(spec, one.ranks, graph).plan;
            const Simulation by_hand = simulate(compile_classes(graph, plan, s.target), s.machine);
            EXPECT_LE(result.best.seconds, by_hand.step_seconds * (1 + 1e-9)) << one.model << " " << spec;
        }
    }
}

TEST(Search, KeepsToTheMemoryThatThereIs) {
    const Setting s;
    const Graph graph = zoo_graph("alexnet", {.batch = 8, .input = {3, 64, 64}, .classes = 10});
    const SearchResult free = search_plan(graph, s.machine, s.target, {.ranks = 4});
    ASSERT_TRUE(free.data);
    // Less than pure data parallelism needs: the weights have to be split.
    const int64_t limit = free.data->memory * 6 / 10;
    const SearchResult tight = search_plan(graph, s.machine, s.target, {.ranks = 4, .memory = limit});
    ASSERT_TRUE(tight.best.fits);
    EXPECT_FALSE(tight.data->fits);
    for (Rank r = 0; r < 4; ++r) {
        const Program program = compile(graph, tight.best.plan, s.target, {.rank = r});
        EXPECT_LE(program.memory.arena_bytes + program.memory.state_bytes, limit) << "rank " << r;
    }
    const SearchResult none = search_plan(graph, s.machine, s.target, {.ranks = 4, .memory = 1 << 20});
    EXPECT_FALSE(none.best.fits);
    EXPECT_GT(none.best.memory, 1 << 20);
}

TEST(Search, RefusesNumbersOfRanksThatNothingCanUse) {
    const Setting s;
    const Graph graph = zoo_graph("lenet5", {.batch = 8});
    try {
        search_plan(graph, s.machine, s.target, {.ranks = 521});
        FAIL() << "521 ranks for LeNet-5";
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("521 ranks cannot share"), std::string::npos) << error.what();
    }
}

TEST(Search, OneRankNeedsNoSearch) {
    const Setting s;
    const SearchResult result = search_plan(zoo_graph("lenet5", {.batch = 8}), s.machine, s.target, {.ranks = 1});
    EXPECT_EQ(result.best.plan, Plan::single());
    EXPECT_FALSE(result.data);
}

}  // namespace
}  // namespace convoy
