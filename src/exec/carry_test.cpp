// Gradient traffic that goes on into the next step changes no bit: against the same programs without it, with everything that can look at a state in between.
#include <cstring>
#include <limits>
#include <optional>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"
#include "comm/thread_world.h"
#include "exec/session.h"
#include "model/autodiff.h"
#include "model/builder.h"
#include "program/plan_spec.h"

namespace convoy {
namespace {

Model small_model(int64_t batch, Mode mode) {
    Builder b(mode);
    ValueId x = b.input({batch, 3, 8, 8});
    for (int i = 0; i < 5; ++i) {
        const std::string at = std::to_string(i);
        x = b.relu("relu" + at,
                   b.batch_norm("bn" + at, b.conv("conv" + at, x, {.filters = 6, .kernel = {3, 3}, .pad = {1, 1}, .bias = i % 2 == 0})));
    }
    x = b.linear("fc0", b.flatten("flatten", b.max_pool("pool", x, {.kernel = {2, 2}})), {.outputs = 12});
    b.graph().add_output("logits", b.linear("fc1", b.relu("relu", x), {.outputs = 10}));
    return {"small", b.take(), {{.output = "logits"}}, 10};
}

struct Case {
    std::string spec;
    Rule rule = Rule::Momentum;
    std::string backend = "reference";
    DType dtype = DType::f64;
    int micro_batches = 1;
    double clip = 0;
    std::optional<bool> carries = true;  // what is expected, where it is
};

Graph training_of(const Case& c, int64_t batch) {
    return training_graph(small_model(batch / c.micro_batches, Mode::Training),
                          {.rule = {.rule = c.rule, .weight_decay = 1e-3}, .clip_norm = c.clip}, {.micro_batches = c.micro_batches});
}

void feed(Executor& executor, const Graph& graph, int step, double broken = 1) {
    for (const auto& [name, v] : graph.inputs()) {
        const ValueType& type = graph.value(v).type;
        const RandomStream random{1, static_cast<uint32_t>(step), stream_of(name)};
        Tensor t(type.shape, type.element == Element::Index ? DType::i32 : DType::f64);
        for (size_t i = 0; i < static_cast<size_t>(t.numel()); ++i) {
            if (t.dtype() == DType::i32)
                t.as<int32_t>()[i] = static_cast<int32_t>(random.uniform(i) * 10);
            else
                t.as<double>()[i] = random.normal(i) * broken;
        }
        executor.set_whole_input(name, name == "hyper" ? Tensor::of<double>({2}, {0.05 / (1 + step), step + 1.0}) : std::move(t));
    }
}

// Everything that was seen, as bytes.
class Log {
  public:
    void add(const Tensor& tensor) { bytes_.append(reinterpret_cast<const char*>(tensor.data()), static_cast<size_t>(tensor.bytes())); }
    void add(const State& state) {
        for (const StateSpec& spec : state.specs()) add(state.read(spec.name));
    }
    const std::string& bytes() const { return bytes_; }

  private:
    std::string bytes_;
};

int carried_in(const Program& program) {
    int count = 0;
    for (const Instruction& in : program.instructions) count += in.due != kNone && !is_traffic(in.action);
    return count;
}

Plan plan_of(const Case& c, const Graph& graph) { return plan_from_spec(c.spec, c.spec == "zero" ? 2 : 0, graph).plan; }

SessionOptions options_of(const Case& c, const Graph& graph, Link& link) {
    return {.backend = c.backend, .dtype = c.dtype, .seed = 3, .plan = plan_of(c, graph), .link = &link};
}

void run_rank(const Case& c, Transport& transport, bool carry, Log& log) {
    constexpr int64_t kBatch = 12, kRest = 4;
    const Graph graph = training_of(c, kBatch), rest_graph = training_of(c, kRest);
    const Graph seen = evaluation_graph(small_model(kRest, Mode::Evaluation));
    Link link(transport, std::chrono::seconds(60));
    Session session(options_of(c, graph, link));
    const auto load = [&](const Graph& g) {
        auto executor = session.load(g);
        if (carry) return executor;
        Program program = executor->program();
        for (Instruction& in : program.instructions) in.due = kNone;  // as it is otherwise: the sums of its buckets are the same
        return std::make_unique<Executor>(std::move(program), Site{session.backend(), session.state(), &link});
    };
    auto executor = load(graph);
    const auto rest = load(rest_graph), evaluation = load(seen);
    if (c.carries || !carry) {
        EXPECT_EQ(carried_in(executor->program()) > 0, carry && *c.carries);
    }
    executor->watch(executor->program().output("loss"));
    State& state = session.state();
    const auto step = [&](Executor& of, const Graph& fed, int number) {
        feed(of, fed, number);
        EXPECT_TRUE(of.run({3, static_cast<uint32_t>(number)})) << number;
        log.add(of.read(of.program().output("loss")));
    };
    int now = 0;
    for (; now < 3; ++now) step(*executor, graph, now);
    log.add(state);
    for (; now < 5; ++now) step(*executor, graph, now);
    step(*rest, rest_graph, now++);  // a last batch, then the next epoch
    step(*executor, graph, now++);
    step(*evaluation, seen, 0);
    step(*executor, graph, now++);
    Tensor halved = state.read("conv4.weight");
    step(*executor, graph, now++);
    state.write("conv4.weight", halved);
    step(*executor, graph, now++);
    TraceLog trace(&link);
    feed(*executor, graph, now);
    executor->run_traced({3, static_cast<uint32_t>(now++)}, trace);
    EXPECT_EQ(trace.own().events.size(), executor->program().instructions.size());
    step(*executor, graph, now++);
    executor->set_traffic_mode(TrafficMode::Serial);
    step(*executor, graph, now++);
    executor->set_traffic_mode(TrafficMode::Beside);
    step(*executor, graph, now++);
    step(*executor, graph, now++);
    // A loss that is not finite ends the step before any update, whether carried or not, and all of the step before is done. Running statistics are of the forward pass.
    const auto is_running = [](const StateSpec& spec) { return spec.kind == StateKind::Buffer; };
    if (carry) {
        feed(*executor, graph, now, std::numeric_limits<double>::infinity());
        EXPECT_FALSE(executor->run({3, static_cast<uint32_t>(now)}));
    }
    for (const StateSpec& spec : state.specs())
        if (!is_running(spec)) log.add(state.read(spec.name));
    for (const StateSpec& spec : state.specs())
        if (is_running(spec)) state.write(spec.name, initial_value(spec, c.dtype, 3));
    step(*executor, graph, now++);
    step(*executor, graph, now++);
    executor.reset();
    log.add(state);
}

std::vector<std::string> logs_of(const Case& c, bool carry) {
    ThreadWorld world(ranks_of(plan_of(c, training_of(c, 12))));
    std::vector<Log> logs(static_cast<size_t>(world.size()));
    run_ranks(world, [&](Transport& transport) { run_rank(c, transport, carry, logs[static_cast<size_t>(transport.rank())]); });
    std::vector<std::string> bytes;
    for (const Log& log : logs) bytes.push_back(log.bytes());
    return bytes;
}

TEST(Carry, ChangesNoBit) {
    bool cpu = false;
    for (const BackendStatus& status : backend_statuses()) cpu = cpu || (status.name == "cpu" && status.ready);
    std::vector<Case> cases{{"sample:2"},
                            {"sample:3", Rule::Adam},
                            {"sample:4", Rule::Sgd},
                            {"sample:2", Rule::Momentum, "reference", DType::f32, 2},
                            {"sample:2,height:2", Rule::Nesterov},
                            {"channel:2@x", Rule::Adam, "reference", DType::f64, 1, 0, std::nullopt},
                            {"zero", Rule::Adam, "reference", DType::f64, 1, 0, true},
                            {"sample:2", Rule::Lars, "reference", DType::f64, 1, 0, true},
                            {"sample:2", Rule::Lamb, "reference", DType::f64, 1, 0, false},
                            {"sample:2", Rule::Momentum, "reference", DType::f64, 1, 0.5, false}};
    if (cpu) {
        cases.push_back({"sample:2", Rule::Momentum, "cpu", DType::f32});
        cases.push_back({"sample:2", Rule::Adam, "cpu", DType::f32, 2});
        cases.push_back({"sample:3", Rule::RmsProp, "cpu", DType::f32});
    }
    for (const Case& c : cases) {
        SCOPED_TRACE(fmt::format("{} {} {} {} clip {}", c.spec, static_cast<int>(c.rule), c.backend, c.micro_batches, c.clip));
        const auto carried = logs_of(c, true), plain = logs_of(c, false);
        ASSERT_EQ(carried.size(), plain.size());
        for (size_t r = 0; r < plain.size(); ++r) {
            const auto at = std::mismatch(carried[r].begin(), carried[r].end(), plain[r].begin(), plain[r].end());
            EXPECT_TRUE(carried[r] == plain[r]) << "rank " << r << ", byte " << at.first - carried[r].begin() << " of " << plain[r].size();
        }
    }
}

// A rank that fails leaves nobody waiting.
TEST(Carry, EndsWithARankThatFails) {
    const Case c{"sample:2"};
    ThreadWorld world(2);
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_THROW(run_ranks(world,
                           [&](Transport& transport) {
                               const Graph graph = training_of(c, 12);
                               Link link(transport, std::chrono::seconds(60));
                               Session session(options_of(c, graph, link));
                               const auto executor = session.load(graph);
                               feed(*executor, graph, 0);
                               for (uint32_t s = 0; s < 5; ++s) {
                                   executor->run({3, s});
                                   require(transport.rank() == 0 || s < 2, "enough");
                               }
                           }),
                 Error);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

// Who looks at the state after a step has failed, with updates of the one before it still to be done, hears what went wrong.
TEST(Carry, WhatIsNotDoneSaysWhy) {
    const Case c{"sample:2"};
    ThreadWorld world(2);
    std::string why;
    EXPECT_THROW(run_ranks(world,
                           [&](Transport& transport) {
                               const Graph graph = training_of(c, 12);
                               Link link(transport, std::chrono::seconds(60));
                               Session session(options_of(c, graph, link));
                               const auto train = [&] {
                                   const auto executor = session.load(graph);
                                   for (int s = 0;; ++s) {
                                       feed(*executor, graph, s);
                                       executor->run({3, static_cast<uint32_t>(s)});
                                       if (transport.rank() == 0) transport.fail_all("the cable is cut");
                                   }
                               };
                               if (transport.rank() == 1) return train();
                               EXPECT_THROW(train(), Error);
                               try {
                                   session.state().settle();
                               } catch (const Error& e) {
                                   why = e.what();
                               }
                           }),
                 Error);
    // Where the traffic was over in time nothing is left to be done.
    EXPECT_TRUE(why.empty() || why.find("the cable is cut") != std::string::npos) << why;
}

}  // namespace
}  // namespace convoy
