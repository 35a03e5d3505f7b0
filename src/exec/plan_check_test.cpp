// The check of plans: it passes what is right, and it can fail.
#include "exec/plan_check.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include <gtest/gtest.h>

#include "base/random.h"
#include "comm/thread_world.h"
#include "exec/compare.h"
#include "exec/turns.h"
#include "model/autodiff.h"
#include "model/builder.h"
#include "program/plan_spec.h"

namespace convoy {
namespace {

Graph training_of(Builder& b, ValueId logits) {
    b.graph().add_output("logits", logits);
    const Model model{"small", b.take(), {{.output = "logits"}}, 10};
    return training_graph(model, {.rule = {.rule = Rule::Adam, .weight_decay = 1e-3}});
}

Graph small_graph(int64_t batch) {
    Builder b(Mode::Training);
    ValueId x = b.input({batch, 3, 8, 8});
    x = b.relu("relu1", b.batch_norm("bn1", b.conv("conv1", x, {.filters = 6, .kernel = {3, 3}, .pad = {1, 1}, .bias = false})));
    x = b.max_pool("pool", x, {.kernel = {2, 2}});
    x = b.relu("relu2", b.conv("conv2", x, {.filters = 8, .kernel = {3, 3}, .pad = {1, 1}}));
    return training_of(b, b.linear("fc", b.flatten("flatten", x), {.outputs = 10}));
}

// On four ranks some have no row of the smallest map, or nothing of one of the branches.
Graph narrow_graph(int64_t batch) {
    Builder b(Mode::Training);
    ValueId x = b.input({batch, 3, 8, 8});
    const ValueId wide = b.relu("relu1", b.conv("conv1", x, {.filters = 5, .kernel = {3, 3}, .pad = {1, 1}}));
    const ValueId thin = b.relu("relu2", b.conv("conv2", x, {.filters = 3, .kernel = {1, 1}}));
    x = b.max_pool("pool", b.concat("concat", {wide, thin}), {.kernel = {8, 8}});
    x = b.conv("conv3", b.adaptive_pool("grow", x, {3, 3}), {.filters = 8, .kernel = {3, 3}, .pad = {1, 1}});
    return training_of(b, b.linear("fc", b.flatten("flatten", x), {.outputs = 10}));
}

std::map<std::string, Tensor> feeds_for(const Graph& graph, int step) {
    std::map<std::string, Tensor> feeds;
    for (const auto& [name, v] : graph.inputs()) {
        const ValueType& type = graph.value(v).type;
        const RandomStream random{1, static_cast<uint32_t>(step), stream_of(name)};
        Tensor t(type.shape, type.element == Element::Index ? DType::i32 : DType::f64);
        for (size_t i = 0; i < static_cast<size_t>(t.numel()); ++i) {
            if (t.dtype() == DType::i32)
                t.as<int32_t>()[i] = static_cast<int32_t>(random.uniform(i) * 10);
            else
                t.as<double>()[i] = random.normal(i);
        }
        feeds[name] = name == "hyper" ? Tensor::of<double>({2}, {0.01, step + 1.0}) : std::move(t);
    }
    return feeds;
}

// With `disturbed`, all ranks but the first compute with an input that is off by so much, relatively.
PlanCheck check(const Graph& graph, const Plan& plan, DType dtype, const std::string& backend, int64_t available_bytes = 0,
                double disturbed = 0) {
    const PlanCheckOptions options{.session = {.backend = backend, .dtype = dtype, .plan = plan},
                                   .steps = 3,
                                   .available_bytes = available_bytes,
                                   .feeds = [&](int step) { return feeds_for(graph, step); }};
    ThreadWorld world(ranks_of(plan));
    std::vector<PlanCheck> results(static_cast<size_t>(world.size()));
    run_ranks(world, [&](Transport& transport) {
        Link link(transport, std::chrono::seconds(60));
        PlanCheckOptions mine = options;
        mine.session.link = &link;
        if (disturbed > 0 && transport.rank() > 0)
            mine.feeds = [&](int step) {
                auto feeds = feeds_for(graph, step);
                for (double& x : feeds.at("input").as<double>()) x *= 1 + disturbed;
                return feeds;
            };
        results[static_cast<size_t>(transport.rank())] = check_plan(graph, mine);
    });
    for (const PlanCheck& result : results) {  // the same on every rank
        EXPECT_EQ(result.max_error(), results[0].max_error());
        EXPECT_EQ(result.compared, results[0].compared);
    }
    return results[0];
}

PlanCheck check(const Plan& plan, DType dtype, const std::string& backend, int64_t batch = 5, int64_t available_bytes = 0,
                double disturbed = 0) {
    return check(small_graph(batch), plan, dtype, backend, available_bytes, disturbed);
}

std::string fast_backend() {
    for (const auto& status : backend_statuses())
        if (status.name == "cpu" && status.ready) return status.name;
    return "reference";
}

class PlanCheckSpecs : public testing::TestWithParam<const char*> {};

TEST_P(PlanCheckSpecs, PassInFloat64AndInFloat32) {
    const Plan plan = plan_from_spec(GetParam(), 0, small_graph(5)).plan;
    const PlanCheck exact = check(plan, DType::f64, "reference");
    EXPECT_TRUE(exact.pass()) << exact.layers[0].layer << ": " << exact.layers[0].what << " is off by " << exact.max_error();
    EXPECT_LE(exact.max_error(), 1e-10);
    EXPECT_GT(exact.max_error(), 0) << "nothing was rounded differently: was anything divided?";
    const PlanCheck real = check(plan, DType::f32, fast_backend());
    EXPECT_TRUE(real.pass()) << real.layers[0].layer << ": " << real.layers[0].what << " is off by " << real.max_error();
    EXPECT_GT(real.max_error(), 1e-9) << "nothing was rounded to float32";
}

INSTANTIATE_TEST_SUITE_P(Specs, PlanCheckSpecs,
                         testing::Values("sample:2", "sample:3", "height:2,width:2", "channel:2@x", "channel:3@y", "channel:2,filter:2@w",
                                         "height:4,width:2", "channel:5@x", "channel:6@y"));

TEST(PlanCheckTest, RanksWithNothingOfSomething) {
    const Graph graph = narrow_graph(3);
    for (const char* spec : {"height:2,width:2", "channel:4@x", "channel:4@y", "sample:4"})
        for (const DType dtype : {DType::f64, DType::f32}) {
            const PlanCheck result =
                check(graph, plan_from_spec(spec, 0, graph).plan, dtype, dtype == DType::f64 ? "reference" : fast_backend());
            EXPECT_TRUE(result.pass()) << spec << ": " << result.layers[0].layer << ": " << result.layers[0].what << " is off by "
                                       << result.max_error();
        }
}

TEST(PlanCheckTest, EveryLayerAndStateIsCompared) {
    const PlanCheck result = check(plan_from_spec("sample:2", 0, small_graph(4)).plan, DType::f64, "reference", 4);
    for (const char* layer : {"conv1", "bn1", "relu1", "pool", "conv2", "fc", "loss.logits"})
        EXPECT_TRUE(std::any_of(result.layers.begin(), result.layers.end(), [&](const Deviation& d) { return d.layer == layer; })) << layer;
    // 3 weights, 2 biases, gamma and beta, each with two moments, and two running statistics; on 2 ranks in the 2 steps of 3 that are looked at.
    EXPECT_GT(result.compared, 2 * 2 * (7 * 3 + 2));
}

// Batch norm over each rank's own samples is a choice, but not what one process computes; the first layers to differ are named.
TEST(PlanCheckTest, FailsWhereSomethingElseIsComputed) {
    Plan plan = plan_from_spec("sample:2", 0, small_graph(4)).plan;
    for (LayerPlan& entry : plan.layers) entry.global_norm = false;
    for (const DType dtype : {DType::f64, DType::f32}) {
        const PlanCheck result = check(plan, dtype, "reference", 4);
        EXPECT_FALSE(result.pass());
        EXPECT_GT(result.max_error(), 1e-3);
        const auto norm = std::find_if(result.layers.begin(), result.layers.end(), [](const Deviation& d) { return d.layer == "bn1"; });
        ASSERT_NE(norm, result.layers.end());
        EXPECT_GT(norm->severity(), 1);
    }
}

// What traffic brings is held to more than kernels are: a small error of the one is worse than a larger one of the other, and must not hide it.
TEST(PlanCheckTest, TheLargestErrorIsNotThatOfTheWorst) {
    const Plan plan = plan_from_spec("sample:2", 0, small_graph(4)).plan;
    const PlanCheck result = check(plan, DType::f32, "reference", 4, 0, 1e-9);
    ASSERT_TRUE(result.pass());
    const Deviation& worst = result.layers.front();
    EXPECT_LT(worst.error, 1e-8) << worst.layer << ": " << worst.what;
    EXPECT_LT(worst.limit, allowed_error(DType::f32));
    EXPECT_GT(result.max_error(), 1e-8) << "kernels in f32 are off by more";
    for (const Deviation& d : result.layers) EXPECT_GE(result.max_error(), d.error) << d.layer;
}

TEST(PlanCheckTest, SaysBeforehandThatMemoryIsShort) {
    const Plan plan = plan_from_spec("sample:2", 0, small_graph(5)).plan;
    for (const auto& [dtype, backend] : {std::pair{DType::f64, std::string("reference")}, std::pair{DType::f32, fast_backend()}}) {
        EXPECT_TRUE(check(plan, dtype, backend, 5, int64_t{1} << 30).pass());
        try {
            check(plan, dtype, backend, 5, 1000);
            ADD_FAILURE() << "a kilobyte was enough";
        } catch (const Error& e) {
            EXPECT_NE(std::string(e.what()).find("GB are free"), std::string::npos) << e.what();
            EXPECT_NE(std::string(e.what()).find("2 ranks"), std::string::npos) << e.what();
        }
    }
}

TEST(Turns, AreTakenOneByOne) {
    ThreadWorld world(4);
    std::atomic<int> inside{0}, most{0}, turns{0};
    run_ranks(world, [&](Transport& transport) {
        Link link(transport, std::chrono::seconds(60));
        const Turns all(&link);
        for (int i = 0; i < 20; ++i) {
            const Turns::Turn turn(all);
            most = std::max(most.load(), ++inside);
            std::this_thread::sleep_for(std::chrono::microseconds(200));
            --inside;
            ++turns;
        }
    });
    EXPECT_EQ(most, 1);
    EXPECT_EQ(turns, 80);
}

TEST(Comparison, SeesEveryElementOfAPartOnce) {
    const Shape shape{6, 5, 4, 3};
    Tensor whole(shape, DType::f64);
    for (size_t i = 0; i < 360; ++i) whole.as<double>()[i] = RandomStream{3, 0, 1}.normal(i);
    for (const Box& box :
         {Box::whole(shape), Box{{1, 0, 0, 0}, {4, 5, 4, 3}}, Box{{0, 2, 0, 0}, {6, 2, 4, 3}}, Box{{2, 1, 1, 1}, {3, 3, 2, 2}}}) {
        Tensor part = part_of(whole, box);
        const auto error = [&] {
            Comparison comparison(Doubles(std::make_shared<const Tensor>(part)), box);
            for (int64_t row = 0; row < 6; row += 2)
                comparison.hear(whole.as<double>().data() + row * 60, Box::whole(shape).with(0, row, row + 2));
            return comparison.error(2, 1);
        };
        EXPECT_EQ(error(), 0) << to_string(box);
        for (double& x : part.as<double>()) x += 3;
        EXPECT_NEAR(error(), 3 * std::sqrt(static_cast<double>(part.numel())) / 2, 1e-12) << to_string(box);
    }
}

TEST(PlanCheckTest, WiderTypesAreHeldToMore) {
    EXPECT_LT(allowed_error(DType::f64), allowed_error(DType::f32));
    EXPECT_LT(allowed_error(DType::f32), allowed_error(DType::tf32));
    EXPECT_LT(allowed_error(DType::tf32), allowed_error(DType::bf16));
}

}  // namespace
}  // namespace convoy
