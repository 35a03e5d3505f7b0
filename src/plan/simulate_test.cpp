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
    for (const char* const spec : {"sample:4", "sample:2,height:2", "channel:4@x", "height:4", "zero"}) {
        const Machine machine = machine_preset("v100");
        const Graph graph = graph_of("resnet18", 8);
        const Plan plan = plan_from_spec(spec, 4, graph).plan;
        const RooflineTarget target(machine.devices[0]);
        const auto classes = compile_all(graph, plan, target);
        const Simulation result = simulate(classes, machine);
        const CostModel costs(machine, {.ranks = 4});
        double sum = 0, longest = 0;
        for (const RankClass& c : classes) {
            std::array<double, kQueues> queues{};
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

// --- Programs written by hand, whose times are known ---

// Copies that take `compute` seconds each and all_reduces over two ranks, each on a node of its own or both on one that they fill, on which they take `traffic`.
struct Bench {
    explicit Bench(double share = 0, int nodes = 2) {
        machine.devices[0] = {
            .name = "core", .rates = {{DType::f32, 1e9, 0}}, .memory_bytes = 1 << 30, .memory_bandwidth = 1e9, .joins = true};
        machine.nodes = {{.name = "node", .count = nodes, .devices = 2 / nodes}};
        machine.links = {{.name = "wire", .latency = 1e-4, .bandwidth = 1e9, .compute_share = share}};
        machine.network = 0;
        for (Rank r = 0; r < 2; ++r) classes.push_back({{.rank = r, .slots = {slot(1'000'000), slot(1'000'000), slot(4'000'000)}}, {r}});
        const CostModel costs(machine, {.ranks = 2});
        compute = 2e-3;
        const TrafficCost cost = costs.collective(Collective::Kind::AllReduce, 4'000'000, costs.shape_of_group({0, 1}));
        traffic = cost.seconds();
        latency = cost.latency;
    }
    static Slot slot(int64_t bytes) { return {.desc = TensorDesc::whole({bytes / 4}, DType::f32), .bytes = bytes}; }
    void add_copy(std::vector<int> waits = {}) {
        for (RankClass& c : classes) c.program.instructions.push_back({.action = Copy{}, .inputs = {0}, .outputs = {1}, .waits = waits});
    }
    int add_sum(Queue queue) {
        for (RankClass& c : classes)
            c.program.instructions.push_back({.action = Collective{Collective::Kind::AllReduce, {0, 1}, {}},
                                              .inputs = {2},
                                              .outputs = {2},
                                              .queue = queue,
                                              .order = static_cast<int64_t>(c.program.instructions.size())});
        return static_cast<int>(classes[0].program.instructions.size()) - 1;
    }
    // A message each way.
    int add_exchange() {
        for (RankClass& c : classes) {
            const std::vector<Exchange::Peer> other{{1 - c.program.rank, 1'000'000}};
            c.program.instructions.push_back({.action = Exchange{other, other},
                                              .inputs = {2},
                                              .outputs = {2},
                                              .queue = Queue::Activation,
                                              .order = static_cast<int64_t>(c.program.instructions.size())});
        }
        const Program& program = classes[0].program;
        exchange = CostModel(machine, {.ranks = 2}).traffic(program, program.instructions.back()).seconds();
        return static_cast<int>(program.instructions.size()) - 1;
    }
    double run(const SimulateOptions& options = {}) const { return simulate(classes, machine, options).step_seconds; }

    Machine machine = machine_preset("cpu10g");
    std::vector<RankClass> classes;
    double compute, traffic, latency, exchange = 0;
};

TEST(Simulate, APipelineOfCollectivesTakesItsFirstStageAndItsSlowestOnes) {
    for (const int count : {1, 2, 7}) {
        Bench bench;
        for (int i = 0; i < count; ++i) {
            bench.add_copy();
            bench.add_sum(Queue::Gradient);
        }
        EXPECT_NEAR(bench.run(), bench.compute + (count - 1) * std::max(bench.compute, bench.traffic) + bench.traffic, 1e-9) << count;
    }
}

// There is nothing that it could hide behind.
TEST(Simulate, TrafficOfRanksThatFillAMachineIsWork) {
    Bench bench(0, 1);
    int last = kNone;
    for (int i = 0; i < 5; ++i) {
        bench.add_copy();
        last = bench.add_sum(Queue::Gradient);
    }
    EXPECT_NEAR(bench.run(), 5 * (bench.compute + bench.traffic), 1e-9);
    bench.add_copy({last});
    for (RankClass& c : bench.classes)
        for (const int i : {last, last + 1}) c.program.instructions[static_cast<size_t>(i)].due = 0;  // nor is anything carried
    EXPECT_NEAR(bench.run(), 6 * bench.compute + 5 * bench.traffic, 1e-9);
}

// One after the other, whatever their queues; those that have begun go before messages, which then have the computation to hide behind.
TEST(Simulate, RanksThatFillAMachineDoTheirCollectivesInOrder) {
    Bench sums(0, 1);
    sums.add_sum(Queue::Gradient);
    sums.add_copy({sums.add_sum(Queue::Activation)});
    EXPECT_NEAR(sums.run(), 2 * sums.traffic + sums.compute, 1e-9);

    Bench messages(0, 1);
    messages.add_copy();
    messages.add_sum(Queue::Gradient);
    const int exchange = messages.add_exchange();
    messages.add_copy();
    messages.add_copy({exchange});
    EXPECT_GT(messages.exchange, 0);
    EXPECT_NEAR(messages.run(), 2 * messages.compute + messages.traffic + std::max(messages.compute, messages.exchange), 1e-9);

    // What is needed waits behind messages of its queue.
    Bench behind(0, 1);
    behind.add_exchange();
    behind.add_copy({behind.add_sum(Queue::Activation)});
    EXPECT_NEAR(behind.run(), behind.exchange + behind.traffic + behind.compute, 1e-9);
}

TEST(Simulate, WhatWaitsForTrafficDoesNotOverlapIt) {
    Bench bench;
    std::vector<int> waits;
    for (int i = 0; i < 5; ++i) {
        bench.add_copy(waits);
        waits = {bench.add_sum(Queue::Activation)};
    }
    EXPECT_NEAR(bench.run(), 5 * (bench.compute + bench.traffic), 1e-9);
}

TEST(Simulate, TrafficOfTwoQueuesSharesALink) {
    Bench bench;
    bench.add_sum(Queue::Activation);
    bench.add_sum(Queue::Gradient);
    // The latencies pass side by side.
    EXPECT_NEAR(bench.run(), bench.latency + 2 * (bench.traffic - bench.latency), 1e-9);
}

TEST(Simulate, TrafficTakesComputingAway) {
    Bench bench(0.25);
    bench.add_sum(Queue::Gradient);
    for (int i = 0; i < 10; ++i) bench.add_copy();
    EXPECT_GT(10 * bench.compute, 2 * bench.traffic);
    EXPECT_NEAR(bench.run(), 10 * bench.compute + 0.25 * bench.traffic, 1e-9);
}

TEST(Simulate, AllWaitForAStraggler) {
    Bench bench;
    bench.add_copy();
    bench.add_sum(Queue::Gradient);
    const SimulateOptions slow{.slowdown = {{1, 3.0}}};
    EXPECT_NEAR(bench.run(slow), 3 * bench.compute + bench.traffic, 1e-9);
}

// Traffic runs beside the beginning of the next step, up to the instruction before which its result is needed.
TEST(Simulate, StepsThatCarryOverlap) {
    for (const int forward : {1, 2, 8}) {
        Bench bench;
        for (int i = 0; i < forward + 1; ++i) bench.add_copy();
        const int sum = bench.add_sum(Queue::Late);
        bench.add_copy({sum});
        EXPECT_NEAR(bench.run(), (forward + 2) * bench.compute + bench.traffic, 1e-9);
        for (RankClass& c : bench.classes)
            for (const int i : {sum, sum + 1}) c.program.instructions[static_cast<size_t>(i)].due = forward;
        EXPECT_NEAR(bench.run(), 2 * bench.compute + std::max(forward * bench.compute, bench.traffic), 1e-9) << forward;
        const Simulation result = simulate(bench.classes, bench.machine, {.timeline = true});
        double computed = 0, sent = 0;
        for (const TraceEvent& e : result.timeline) (e.queue == static_cast<int>(Queue::Compute) ? computed : sent) += e.duration_us * 1e-6;
        EXPECT_NEAR(computed, 2 * (forward + 2) * bench.compute, 1e-9);
        EXPECT_NEAR(sent, 2 * bench.traffic, 1e-9);
        double end = 0;
        for (const TraceEvent& e : result.timeline) end = std::max(end, (e.begin_us + e.duration_us) * 1e-6);
        EXPECT_NEAR(end, (forward + 2) * bench.compute + bench.traffic, 1e-9);  // of a step by itself
        EXPECT_NEAR(result.classes[0].compute_seconds, (forward + 2) * bench.compute, 1e-9);
    }
}

TEST(Simulate, WhatIsNeededLateGivesWayBetweenMachines) {
    for (const Queue queue : {Queue::Late, Queue::Activation}) {
        Bench bench;
        const int other = bench.add_sum(queue), gradient = bench.add_sum(Queue::Gradient);
        bench.add_copy({gradient});
        bench.add_copy({other});
        bench.add_copy({other});
        const double transfer = bench.traffic - bench.latency;
        const double gradient_over = bench.latency + (queue == Queue::Late ? 1.5 : 2) * transfer, all_over = bench.latency + 2 * transfer;
        EXPECT_NEAR(bench.run(), std::max(gradient_over + bench.compute, all_over) + 2 * bench.compute, 1e-9);
    }
}

TEST(Simulate, TheTimelineHoldsEveryInstructionOnce) {
    Bench bench;
    bench.add_copy();
    bench.add_sum(Queue::Gradient);
    const Simulation result = simulate(bench.classes, bench.machine, {.timeline = true});
    ASSERT_EQ(result.timeline.size(), 4u);
    for (const TraceEvent& e : result.timeline) EXPECT_LE((e.begin_us + e.duration_us) * 1e-6, result.step_seconds + 1e-9);
}

}  // namespace
}  // namespace convoy
