#include "plan/simulate.h"

#include <gtest/gtest.h>

#include "model/autodiff.h"
#include "model/zoo.h"
#include "plan/roofline_target.h"
#include "program/plan_spec.h"

namespace convoy {
namespace {

Graph graph_of(const std::string& model, int64_t batch) {
    return training_graph(make_model(model, {.batch = batch}), {.rule = {.rule = Rule::Momentum}});
}

Simulation run(const Graph& graph, const std::string& spec, const Machine& machine, bool fold, const SimulateOptions& options = {}) {
    const Plan plan = spec.empty() ? Plan::single() : plan_from_spec(spec, 0, graph).plan;
    const RooflineTarget target(machine.devices[0]);
    const auto classes = fold ? compile_classes(graph, plan, target) : compile_all(graph, plan, target);
    return simulate(classes, machine, options);
}

TEST(Simulate, OneRankTakesTheSumOfItsInstructions) {
    const Machine machine = machine_preset("v100");
    const Graph graph = graph_of("lenet5", 64);
    const RooflineTarget target(machine.devices[0]);
    const auto classes = compile_classes(graph, Plan::single(), target);
    const CostModel costs(machine, {.ranks = 1});
    double sum = 0;
    for (const Instruction& in : classes[0].program.instructions) sum += costs.compute(classes[0].program, in).seconds;
    const Simulation result = simulate(classes, machine);
    EXPECT_NEAR(result.step_seconds, sum, 1e-9 * sum);
    EXPECT_EQ(result.classes[0].waiting_seconds, 0);
}

TEST(Simulate, OverlapLiesBetweenTheLongestQueueAndTheSum) {
    for (const char* const spec : {"sample:4", "sample:2,height:2", "channel:2@x", "height:4", "zero"}) {
        const Machine machine = machine_preset("v100");
        const Graph graph = graph_of("resnet18", 8);
        const Plan plan = plan_from_spec(spec, 4, graph).plan;
        const RooflineTarget target(machine.devices[0]);
        const auto classes = compile_all(graph, plan, target);
        const Simulation result = simulate(classes, machine);
        const CostModel costs(machine, {.ranks = 4});
        double sum = 0, longest = 0;
        for (const RankClass& c : classes) {
            std::array<double, 4> queues{};
            for (const Instruction& in : c.program.instructions)
                queues[static_cast<size_t>(in.queue)] +=
                    is_traffic(in.action) ? costs.traffic(c.program, in).seconds() : costs.compute(c.program, in).seconds;
            for (const double q : queues) {
                sum += q;
                longest = std::max(longest, q);
            }
        }
        EXPECT_GE(result.step_seconds, longest * (1 - 1e-9)) << spec;
        EXPECT_LE(result.step_seconds, sum * 1.5) << spec;
    }
}

TEST(Simulate, FoldingChangesNothing) {
    const Machine machine = machine_preset("v100");
    for (const char* const spec : {"sample:8", "sample:4,height:2", "channel:4@y", "sample:2,channel:2@x", "sample:3"}) {
        const Graph graph = graph_of("resnet18", 16);
        const Simulation folded = run(graph, spec, machine, true), whole = run(graph, spec, machine, false);
        EXPECT_LT(folded.classes.size(), whole.classes.size()) << spec;
        EXPECT_NEAR(folded.step_seconds, whole.step_seconds, 1e-9) << spec;
    }
}

TEST(Simulate, NoiseRepeatsWithItsSeed) {
    const Machine machine = machine_preset("v100");
    const Graph graph = graph_of("resnet18", 8);
    const double quiet = run(graph, "sample:4", machine, false).step_seconds;
    const SimulateOptions noisy{.noise = 0.2, .seed = 5}, other{.noise = 0.2, .seed = 6};
    const double once = run(graph, "sample:4", machine, false, noisy).step_seconds;
    EXPECT_EQ(once, run(graph, "sample:4", machine, false, noisy).step_seconds);
    EXPECT_NE(once, run(graph, "sample:4", machine, false, other).step_seconds);
    EXPECT_NE(once, quiet);
}

}  // namespace
}  // namespace convoy
