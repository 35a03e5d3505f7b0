// Compiled programs against the interpreter, their memory, and the state.
#include "exec/executor.h"

#include <cmath>

#include <malloc.h>

#include <gtest/gtest.h>

#include "base/random.h"
#include "exec/counting_allocator.h"
#include "exec/session.h"
#include "kernels/reference/reference.h"
#include "model/autodiff.h"
#include "model/builder.h"
#include "model/zoo.h"

namespace convoy {
namespace {

Tensor random_tensor(const Shape& shape, DType dtype, const std::string& name) {
    Tensor t(shape, DType::f64);
    const RandomStream random{5, 0, stream_of(name)};
    for (int64_t i = 0; i < t.numel(); ++i) t.as<double>()[static_cast<size_t>(i)] = random.normal(static_cast<uint64_t>(i));
    return t.to(dtype);
}

Tensor feed_for(const Graph& graph, ValueId v, const std::string& name, DType dtype, int64_t classes) {
    const ValueType& type = graph.value(v).type;
    if (name == "hyper") return Tensor::of<double>({2}, {0.05, 1}).to(dtype);
    if (type.element != Element::Index) return random_tensor(type.shape, dtype, name);
    Tensor t(type.shape, DType::i32);
    for (int64_t i = 0; i < t.numel(); ++i) t.as<int32_t>()[static_cast<size_t>(i)] = static_cast<int32_t>((i * 7 + 3) % classes);
    return t;
}

// Runs `steps` steps compiled and interpreted and compares every output and state.
void expect_same_as_interpreter(const Graph& graph, int64_t classes, int steps, double tolerance = 1e-12,
                                const std::string& backend = "reference") {
    Session session({.backend = backend, .dtype = DType::f64, .threads = 2, .seed = 3});
    const auto executor = session.load(graph);
    const Program& program = executor->program();
    std::map<std::string, Tensor> feeds;
    for (const auto& spec : session.state().specs()) feeds[spec.name] = session.state().read(spec.name);
    for (const auto& spec : graph.states())
        if (!feeds.count(spec.name)) feeds[spec.name] = initial_value(spec, DType::f64, 3);  // states that nothing reads
    for (const auto& [name, v] : graph.inputs()) {
        feeds[name] = feed_for(graph, v, name, DType::f64, classes);
        executor->set_input(program.input(name), feeds[name]);
    }
    for (int step = 0; step < steps; ++step) {
        const StepContext context{3, static_cast<uint32_t>(step)};
        ASSERT_TRUE(executor->run(context));
        const auto expected = interpret(graph, feeds, DType::f64, context);
        for (const auto& [name, slot] : program.outputs)
            EXPECT_LE(relative_error(executor->read(slot), expected.at(name), 1e-30), tolerance) << name << " in step " << step;
        for (const auto& store : graph.stores()) {
            const std::string& name = graph.value(store.state).name;
            feeds[name] = expected.at("store:" + name);
            EXPECT_LE(relative_error(session.state().read(name), feeds[name], 1e-30), tolerance) << name << " after step " << step;
        }
    }
}

Model small_model(int64_t batch, Mode mode) {
    Builder b(mode);
    ValueId x = b.input({batch, 2, 9, 8});
    x = b.conv("conv1", x, {.filters = 4, .kernel = {3, 3}, .pad = {1, 1}, .bias = false});
    x = b.batch_norm("bn1", x);
    x = b.relu("relu1", x);
    const ValueId skip = x;
    x = b.conv("conv2", x, {.filters = 4, .kernel = {3, 3}, .pad = {1, 1}, .bias = false});
    x = b.group_norm("gn", x, 2);
    x = b.add("add", {x, skip});
    x = b.max_pool("pool", x, {.kernel = {2, 2}});
    x = b.dropout("drop", x, 0.3);
    x = b.flatten("flatten", x);
    x = b.linear("fc1", x, {.outputs = 6});
    x = b.unary("tanh", x, Unary::Tanh);
    x = b.linear("fc2", x, {.outputs = 6, .share = ""});
    x = b.linear("fc3", x, {.outputs = 6, .share = "fc2"});  // shares fc2's parameters
    b.graph().add_output("output", x);
    return {"small", b.take(), {{.output = "output"}}, 6};
}

TEST(Compiled, EqualsInterpreterForEveryOptimizer) {
    const Model model = small_model(4, Mode::Training);
    for (const Rule rule :
         {Rule::Sgd, Rule::Momentum, Rule::Nesterov, Rule::AdaGrad, Rule::RmsProp, Rule::Adam, Rule::AdamW, Rule::Lars, Rule::Lamb}) {
        SCOPED_TRACE(std::string(name_of(rule)));
        expect_same_as_interpreter(
            training_graph(model, {.rule = {.rule = rule, .weight_decay = 0.01}, .clip_norm = rule == Rule::Sgd ? 0 : 0.5}), 6, 3);
    }
}

TEST(Compiled, EqualsInterpreterWithMicroBatches) {
    Model model = small_model(2, Mode::Training);
    model.losses[0].class_weights = {1, 2, 0.5, 1, 3, 1};
    model.losses[0].label_smoothing = 0.1;
    expect_same_as_interpreter(training_graph(model, {.rule = {.rule = Rule::Momentum}}, {.micro_batches = 3}), 6, 3);
}

TEST(Compiled, EqualsInterpreterInEvaluation) {
    expect_same_as_interpreter(evaluation_graph(small_model(3, Mode::Evaluation)), 6, 1);
    expect_same_as_interpreter(gradient_graph(small_model(3, Mode::Evaluation), true), 6, 1);
    expect_same_as_interpreter(gradient_graph(small_model(3, Mode::Training), true), 6, 1);
}

TEST(Compiled, EqualsInterpreterOnTheZoo) {
    for (const char* name : {"lenet5", "resnet20", "squeezenet1_1"}) {
        SCOPED_TRACE(name);
        const Model model =
            make_model(name, {.batch = 2, .input = std::string(name) == "lenet5" ? Shape{1, 28, 28} : Shape{3, 40, 40}, .classes = 5});
        expect_same_as_interpreter(training_graph(model, {.rule = {.rule = Rule::Momentum}}), 5, 2, 1e-9);
    }
    const Model unet = make_model("unet3d", {.batch = 1, .input = {1, 16, 16, 16}, .classes = 3});
    expect_same_as_interpreter(training_graph(unet, {.rule = {.rule = Rule::Adam}}), 3, 1, 1e-9);
}

// Why there is no GPU; empty when there is one.
std::string no_gpu() {
    for (const auto& status : backend_statuses())
        if (status.name == "cuda" && !status.ready) return status.detail;
    return "";
}

// More than two steps, so that recorded ones are among them; dropout sees another step each time.
TEST(Gpu, EqualsInterpreter) {
    if (const std::string why = no_gpu(); !why.empty()) GTEST_SKIP() << "backend cuda: " << why;
    for (const Rule rule :
         {Rule::Sgd, Rule::Momentum, Rule::Nesterov, Rule::AdaGrad, Rule::RmsProp, Rule::Adam, Rule::AdamW, Rule::Lars, Rule::Lamb}) {
        SCOPED_TRACE(std::string(name_of(rule)));
        const Optimizer optimizer{.rule = {.rule = rule, .weight_decay = 0.01}, .clip_norm = rule == Rule::Sgd ? 0 : 0.5};
        expect_same_as_interpreter(training_graph(small_model(4, Mode::Training), optimizer), 6, 4, 1e-9, "cuda");
    }
    for (const auto& [name, input] : std::vector<std::pair<std::string, Shape>>{
             {"lenet5", {1, 28, 28}}, {"resnet18", {3, 48, 48}}, {"squeezenet1_1", {3, 40, 40}}, {"unet3d", {1, 16, 16, 16}}}) {
        SCOPED_TRACE(name);
        const Model model = make_model(name, {.batch = 2, .input = input, .classes = 3});
        expect_same_as_interpreter(training_graph(model, {.rule = {.rule = Rule::Momentum}}), 3, 3, 1e-7, "cuda");
    }
}

TEST(Gpu, SameSeedSameBits) {
    if (const std::string why = no_gpu(); !why.empty()) GTEST_SKIP() << "backend cuda: " << why;
    const Model model = make_model("resnet20", {.batch = 8, .input = {3, 32, 32}, .classes = 5});
    const Graph graph = training_graph(model, {.rule = {.rule = Rule::Momentum}});
    for (const DType dtype : {DType::f32, DType::tf32, DType::bf16}) {
        SCOPED_TRACE(std::string(name_of(dtype)));
        std::vector<std::vector<Tensor>> ends;
        for (int time = 0; time < 2; ++time) {
            Session session({.backend = "cuda", .dtype = dtype, .seed = 3});
            const auto executor = session.load(graph);
            for (const auto& [name, v] : graph.inputs()) executor->set_whole_input(name, feed_for(graph, v, name, DType::f64, 5));
            for (uint32_t step = 0; step < 5; ++step) ASSERT_TRUE(executor->run({3, step}));
            ends.emplace_back();
            for (const auto& spec : session.state().specs()) {
                ends.back().push_back(session.state().read(spec.name));
                for (int64_t i = 0; i < ends.back().back().numel(); ++i)
                    ASSERT_TRUE(std::isfinite(element(ends.back().back(), i))) << spec.name;
            }
        }
        EXPECT_TRUE(ends[0] == ends[1]);
    }
}

// Micro-batches of a net without batch statistics add up to the whole batch.
TEST(Compiled, MicroBatchesAddUp) {
    const auto build = [](int64_t batch) {
        Builder b(Mode::Training);
        ValueId x = b.input({batch, 3, 6, 6});
        x = b.conv("conv", x, {.filters = 5, .kernel = {3, 3}});
        x = b.dropout("drop", b.relu("relu", x), 0.4);
        x = b.linear("fc", b.flatten("flatten", x), {.outputs = 4});
        b.graph().add_output("output", x);
        return Model{"m", b.take(), {{.output = "output", .class_weights = {1, 2, 3, 4}}}, 4};
    };
    const Optimizer optimizer{.rule = {.rule = Rule::Adam}};
    const Graph whole = training_graph(build(6), optimizer), parts = training_graph(build(2), optimizer, {.micro_batches = 3});
    const Tensor x = random_tensor({6, 3, 6, 6}, DType::f64, "x");
    Tensor t({6}, DType::i32);
    for (int i = 0; i < 6; ++i) t.as<int32_t>()[static_cast<size_t>(i)] = i % 4;
    const auto slice = [](const Tensor& from, int64_t first, int64_t count) {
        Shape shape = from.shape();
        shape[0] = count;
        Tensor part(shape, from.dtype());
        const int64_t row = from.bytes() / from.shape()[0];
        std::copy_n(from.data() + first * row, count * row, part.data());
        return part;
    };
    Session a({.dtype = DType::f64}), b({.dtype = DType::f64});
    const auto ea = a.load(whole), eb = b.load(parts);
    const Tensor hyper = Tensor::of<double>({2}, {0.01, 1});
    ea->set_input(ea->program().input("input"), x);
    ea->set_input(ea->program().input("target"), t);
    for (int m = 0; m < 3; ++m) {
        eb->set_input(eb->program().input(micro_name("input", m)), slice(x, 2 * m, 2));
        eb->set_input(eb->program().input(micro_name("target", m)), slice(t, 2 * m, 2));
    }
    for (auto* e : {ea.get(), eb.get()}) {
        e->set_input(e->program().input("hyper"), hyper);
        ASSERT_TRUE(e->run({9, 4}));
    }
    for (const char* out : {"loss", "correct"})
        EXPECT_LE(relative_error(eb->read(eb->program().output(out)), ea->read(ea->program().output(out)), 1e-30), 1e-12) << out;
    for (const auto& spec : a.state().specs())
        EXPECT_LE(relative_error(b.state().read(spec.name), a.state().read(spec.name), 1e-30), 1e-9) << spec.name;
}

// Slots that live at the same time never overlap: checked by replaying the program symbolically.
TEST(Memory, NothingIsOverwrittenWhileItIsNeeded) {
    Session session({.dtype = DType::f32});
    const Program p = session.compile(training_graph(make_model("resnet20", {.batch = 2}), {.rule = {.rule = Rule::Momentum}}));
    std::vector<std::pair<int64_t, int64_t>> owner;  // (slot, version) of each 64-byte line
    owner.assign(static_cast<size_t>(p.memory.arena_bytes / 64 + 1), {-1, -1});
    const auto write = [&](SlotId id) {
        const Slot& s = p.slot(id);
        if (s.state != kNone) return;
        for (int64_t line = s.offset / 64; line < (s.offset + s.bytes + 63) / 64; ++line)
            owner[static_cast<size_t>(line)] = {s.offset, s.bytes};
    };
    const auto expect_intact = [&](SlotId id) {
        const Slot& s = p.slot(id);
        if (s.state != kNone) return;
        for (int64_t line = s.offset / 64; line < (s.offset + s.bytes + 63) / 64; ++line)
            ASSERT_EQ(owner[static_cast<size_t>(line)], (std::pair<int64_t, int64_t>{s.offset, s.bytes})) << s.name;
    };
    for (const auto& [name, slot] : p.inputs) write(slot);
    for (const Instruction& in : p.instructions) {
        for (const SlotId id : in.inputs) expect_intact(id);
        if (const auto* c = std::get_if<Compute>(&in.action); c && c->workspace_bytes > 0)
            for (int64_t line = c->workspace_offset / 64; line < (c->workspace_offset + c->workspace_bytes + 63) / 64; ++line)
                owner[static_cast<size_t>(line)] = {-1, -1};
        for (const SlotId id : in.outputs) write(id);
    }
    for (const auto& [name, slot] : p.inputs) expect_intact(slot);
    for (const auto& [name, slot] : p.outputs) expect_intact(slot);
}

// What a step leaves in its memory another program may overwrite, and what it reads there it must have been given since.
TEST(Memory, ProgramsOfASessionTakeTurns) {
    const auto training = [](int64_t batch) {
        return training_graph(make_model("lenet5", {.batch = batch}), {.rule = {.rule = Rule::Momentum}});
    };
    const std::vector<Graph> graphs{training(8), training(3),
                                    evaluation_graph(make_model("lenet5", {.batch = 5, .mode = Mode::Evaluation}))};
    const auto losses = [&](bool shared) {
        Session session({.dtype = DType::f64, .reuse_memory = shared});
        std::vector<std::unique_ptr<Executor>> executors;
        int64_t all = 0, most = 0;
        for (const Graph& graph : graphs) {
            executors.push_back(session.load(graph));
            const int64_t bytes = executors.back()->program().memory.arena_bytes;
            all += bytes;
            most = std::max(most, bytes);
        }
        EXPECT_LT(session.step_bytes(), (shared ? most : all) + 4096 * 3);
        EXPECT_GE(session.step_bytes(), shared ? most : all);
        std::vector<double> seen;
        for (uint32_t turn = 0; turn < 9; ++turn) {
            Executor& executor = *executors[turn % 3];
            for (const auto& [name, v] : graphs[turn % 3].inputs())
                executor.set_input(executor.program().input(name), feed_for(graphs[turn % 3], v, name, DType::f64, 10));
            EXPECT_TRUE(executor.run({3, turn}));
            seen.push_back(element(executor.read(executor.program().output("loss")), 0));
        }
        return seen;
    };
    EXPECT_EQ(losses(true), losses(false));
}

// A program that is larger than those before it gets memory of its own, which later ones share; the smaller one's goes with the last that runs there.
TEST(Memory, ALargerProgramBringsItsOwn) {
    Session session({.dtype = DType::f32});
    const auto evaluation = [](int64_t batch) {
        return evaluation_graph(make_model("lenet5", {.batch = batch, .mode = Mode::Evaluation}));
    };
    auto small = session.load(evaluation(2));
    const int64_t first = session.step_bytes();
    auto large = session.load(evaluation(16));
    const int64_t both = session.step_bytes(), largest = both - first;
    EXPECT_GE(largest, large->program().memory.arena_bytes);
    const auto middle = session.load(evaluation(8));
    EXPECT_EQ(session.step_bytes(), both);
    small.reset();
    EXPECT_EQ(session.step_bytes(), largest);
}

TEST(Memory, PlannedIsAllocatedAndReused) {
    Session session({.dtype = DType::f32});
    const Program resnet = session.compile(training_graph(make_model("resnet18", {.batch = 8}), {.rule = {.rule = Rule::Momentum}}));
    EXPECT_LE(static_cast<double>(resnet.memory.arena_bytes), 0.6 * static_cast<double>(resnet.memory.unshared_bytes));
    const auto executor = session.load(training_graph(make_model("lenet5", {.batch = 8}), {.rule = {.rule = Rule::Adam}}));
    EXPECT_EQ(session.step_bytes(), executor->program().memory.arena_bytes);
    EXPECT_EQ(session.state().bytes(), executor->program().memory.state_bytes);
}

// The gradient of the ReLU that is pooled has no pass of its own.
TEST(Compiled, AReluUnderMaxPoolingIsMaskedByIts) {
    for (const BackendStatus& status : backend_statuses())
        if (status.name == "cpu" && !status.ready) GTEST_SKIP() << "backend cpu: " << status.detail;
    Session session({.backend = "cpu", .dtype = DType::f32});
    const Program p = session.compile(training_graph(make_model("lenet5", {.batch = 8}), {.rule = {.rule = Rule::Momentum}}));
    int both = 0;
    for (const Instruction& in : p.instructions) {
        const auto* const compute = std::get_if<Compute>(&in.action);
        if (!compute || !std::holds_alternative<MaxPoolGradOp>(compute->problem.steps.back().op)) continue;
        both += compute->problem.steps.size() == 2 && std::holds_alternative<UnaryGradOp>(compute->problem.steps[0].op);
    }
    EXPECT_EQ(both, 2);
}

TEST(Executor, AStepAllocatesNothing) {
    Session session({.dtype = DType::f32, .threads = 2});
    const auto executor = session.load(training_graph(make_model("lenet5", {.batch = 8}), {.rule = {.rule = Rule::Adam}, .clip_norm = 1}));
    const Program& p = executor->program();
    executor->watch(p.output("loss"));
    executor->set_input(p.input("hyper"), Tensor::of<float>({2}, {0.01f, 1}));
    executor->set_input(p.input("target"), Tensor({8}, DType::i32));
    const Tensor input = random_tensor({8, 1, 28, 28}, DType::f32, "x");
    executor->set_input(p.input("input"), input);
    ASSERT_TRUE(executor->run({1, 0}));
    const auto in_use = ::mallinfo2().uordblks;
    start_counting_allocations();
    executor->set_input(p.input("input"), input);
    const bool finite = executor->run({1, 1});
    EXPECT_EQ(stop_counting_allocations(), 0);
    EXPECT_EQ(::mallinfo2().uordblks, in_use);
    EXPECT_TRUE(finite);
}

TEST(Executor, FindsWhereNumbersStopBeingFinite) {
    Session session({.dtype = DType::f32});
    const auto executor = session.load(training_graph(make_model("lenet5", {.batch = 2}), {}));
    const Program& p = executor->program();
    executor->watch(p.output("loss"));
    executor->set_input(p.input("hyper"), Tensor::of<float>({2}, {0.01f, 1}));
    executor->set_input(p.input("target"), Tensor({2}, DType::i32));
    executor->set_input(p.input("input"), random_tensor({2, 1, 28, 28}, DType::f32, "x"));
    EXPECT_TRUE(executor->run({1, 0}));
    EXPECT_FALSE(executor->find_non_finite({1, 0}).has_value());
    Tensor w = session.state().read("fc1.weight");
    const Tensor before = session.state().read("conv1.weight");
    for (float& v : w.as<float>()) v = 3e38f;
    session.state().write("fc1.weight", w);
    EXPECT_FALSE(executor->run({1, 1}));
    EXPECT_EQ(session.state().read("conv1.weight"), before);  // the step ended before any update
    EXPECT_NE(executor->find_non_finite({1, 1}).value().find("\"fc1\""), std::string::npos);
    w.as<float>()[0] = NAN;
    session.state().write("fc1.weight", w);
    EXPECT_NE(executor->find_non_finite({1, 1}).value().find("\"fc1.weight\" was not finite before"), std::string::npos);
}

TEST(State, BeginsTheSameWhateverTheProgram) {
    Session a({.dtype = DType::f64, .seed = 7}), b({.dtype = DType::f32, .seed = 7});
    a.load(training_graph(make_model("lenet5", {.batch = 2}), {}));
    b.load(evaluation_graph(make_model("lenet5", {.batch = 5, .mode = Mode::Evaluation})));
    for (const auto& spec : b.state().specs())
        EXPECT_LE(relative_error(b.state().read(spec.name), a.state().read(spec.name)), 1e-7) << spec.name;
    EXPECT_THROW(b.state().write("conv1.weight", Tensor({1, 2}, DType::f32)), Error);
    EXPECT_THROW(b.state().write("conv9.weight", Tensor({1, 2}, DType::f32)), Error);
    EXPECT_THROW(b.load(evaluation_graph(make_model("lenet5", {.batch = 5, .classes = 11, .mode = Mode::Evaluation}))), Error);
}

}  // namespace
}  // namespace convoy
