// Traced steps: every instruction once, lanes in order, all ranks on one clock.
#include "exec/trace_log.h"

#include <set>

#include <gtest/gtest.h>

#include "comm/thread_world.h"
#include "exec/session.h"
#include "model/autodiff.h"
#include "model/zoo.h"
#include "program/plan_spec.h"

namespace convoy {
namespace {

void feed(Executor& executor) {
    for (const auto& [name, slot] : executor.program().inputs) executor.set_input(slot, executor.tensor_for(slot));
}

TEST(TraceLog, has_every_instruction_with_its_cost) {
    const Graph graph = training_graph(make_model("lenet5", {.batch = 2}), {.rule = {.rule = Rule::Momentum}});
    Session session({.seed = 3});
    const auto executor = session.load(graph);
    feed(*executor);
    TraceLog log;
    ASSERT_TRUE(executor->run_traced({3, 4}, log));
    const Trace trace = log.own();
    const Program& program = executor->program();
    ASSERT_EQ(trace.events.size(), program.instructions.size());
    double last = 0;
    for (size_t i = 0; i < trace.events.size(); ++i) {
        const TraceEvent& e = trace.events[i];
        EXPECT_EQ(e.layer, program.instructions[i].layer);
        EXPECT_EQ(e.what, text_of(program.instructions[i]));
        EXPECT_EQ(e.bytes, program.instructions[i].bytes);
        EXPECT_EQ(e.step, 4);
        EXPECT_EQ(trace.queues[static_cast<size_t>(e.queue)], "compute");
        EXPECT_GE(e.begin_us, last);
        EXPECT_GE(e.duration_us, 0);
        last = e.begin_us + e.duration_us;
    }
    EXPECT_EQ(trace, log.all());
}

TEST(TraceLog, gathers_the_lanes_of_all_ranks) {
    const Graph graph = training_graph(make_model("lenet5", {.batch = 4}), {.rule = {.rule = Rule::Momentum}});
    const UniformPlan plan = plan_from_spec("sample:2", 2, graph);
    std::vector<Trace> traces(2);
    ThreadWorld world(2);
    run_ranks(world, [&](Transport& transport) {
        Link link(transport, std::chrono::seconds(60));
        Session session({.seed = 3, .plan = plan.plan, .link = &link});
        const auto executor = session.load(graph);
        feed(*executor);
        TraceLog log(&link);
        executor->run_traced({3, 0}, log);
        traces[static_cast<size_t>(link.rank())] = log.all();
    });
    EXPECT_EQ(traces[0], traces[1]);
    std::set<std::pair<int, std::string>> lanes;
    int64_t sent = 0;
    for (const TraceEvent& e : traces[0].events) {
        lanes.emplace(e.rank, traces[0].queues[static_cast<size_t>(e.queue)]);
        if (e.rank == 1) sent += e.sent;
        EXPECT_GE(e.begin_us, 0);
    }
    for (const int rank : {0, 1})
        for (const char* queue : {"compute", "gradient"}) EXPECT_TRUE(lanes.count({rank, queue})) << rank << ' ' << queue;
    EXPECT_GT(sent, 0);
}

}  // namespace
}  // namespace convoy
