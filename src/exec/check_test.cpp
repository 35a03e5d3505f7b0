// Every instruction of a backend's program, on the inputs of a float64 run, against what that run computed.
#include "exec/check.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/random.h"
#include "base/test_count.h"
#include "exec/plan_check.h"
#include "exec/session.h"
#include "model/autodiff.h"
#include "model/zoo.h"

namespace convoy {
namespace {

std::map<std::string, Tensor> random_feeds(const Graph& graph, int64_t classes) {
    std::map<std::string, Tensor> feeds;
    for (const auto& [name, v] : graph.inputs()) {
        const ValueType& type = graph.value(v).type;
        const RandomStream random{1, 0, stream_of(name)};
        Tensor t(type.shape, type.element == Element::Index ? DType::i32 : DType::f64);
        for (int64_t i = 0; i < t.numel(); ++i) {
            if (t.dtype() == DType::i32)
                t.as<int32_t>()[static_cast<size_t>(i)] =
                    static_cast<int32_t>(random.uniform(static_cast<uint64_t>(i)) * static_cast<double>(classes));
            else
                t.as<double>()[static_cast<size_t>(i)] = random.normal(static_cast<uint64_t>(i));
        }
        if (name == "hyper") t = Tensor::of<double>({2}, {0.01, 1});
        feeds[name] = std::move(t);
    }
    for (const auto& spec : graph.states()) feeds[spec.name] = initial_value(spec, DType::f64, 1);
    return feeds;
}

std::vector<InstructionError> check(const Graph& graph, int64_t classes, const std::string& backend, DType dtype) {
    Session session({.backend = backend, .dtype = dtype, .threads = 2});
    const auto feeds = random_feeds(graph, classes);
    return check_instructions(session.compile(graph), session.backend(), parts_of(feeds), {1, 7});
}

// The backends that are ready here, with the types that they are checked in.
std::vector<std::pair<std::string, DType>> checked() {
    std::vector<std::pair<std::string, DType>> list{{"reference", DType::f32}};
    for (const auto& status : backend_statuses()) {
        if (!status.ready) continue;
        if (status.name == "cpu") list.emplace_back(status.name, DType::f32);
        if (status.name == "cuda")
            for (const DType type : {DType::f32, DType::tf32, DType::bf16}) list.emplace_back(status.name, type);
    }
    return list;
}

struct ZooCase {
    std::string name;
    Shape input;
    bool always;  // in a sample too
};

class CheckZoo : public testing::TestWithParam<ZooCase> {};

TEST_P(CheckZoo, EveryInstruction) {
    const ZooCase& c = GetParam();
    if (!c.always && test_count(0, 1) == 0) GTEST_SKIP() << "with CONVOY_TEST_FULL=1 only";
    const Model model = make_model(c.name, {.batch = 2, .input = c.input, .classes = 7});
    const Graph graph = training_graph(model, {.rule = {.rule = Rule::Momentum, .weight_decay = 1e-4}});
    for (const auto& [backend, dtype] : checked()) {
        int failures = 0;
        for (const InstructionError& e : check(graph, 7, backend, dtype)) {
            if (e.error <= allowed_error(dtype)) continue;
            ADD_FAILURE() << c.name << " on " << backend << " in " << name_of(dtype) << ", instruction " << e.instruction << " " << e.text
                          << ": error " << e.error << ", allowed " << allowed_error(dtype);
            if (++failures == 10) break;
        }
    }
}

// Inputs are small, but large enough that no batch norm sees only two elements a channel: its gradient would be all cancellation.
const ZooCase kZoo[] = {
    {"lenet5", {1, 28, 28}, true},           {"alexnet", {3, 64, 64}, false},         {"vgg11", {3, 32, 32}, false},
    {"vgg16_bn", {3, 64, 64}, false},        {"googlenet", {3, 64, 64}, false},       {"resnet18", {3, 64, 64}, true},
    {"resnet50", {3, 64, 64}, false},        {"resnet20", {3, 32, 32}, true},         {"resnet18_cifar", {3, 16, 16}, false},
    {"wide_resnet50_2", {3, 64, 64}, false}, {"densenet121", {3, 64, 64}, false},     {"squeezenet1_1", {3, 48, 48}, true},
    {"mobilenet_v2", {3, 64, 64}, true},     {"cosmoflow64", {4, 64, 64, 64}, false}, {"unet3d", {1, 16, 16, 16}, true}};

INSTANTIATE_TEST_SUITE_P(Models, CheckZoo, testing::ValuesIn(kZoo), [](const auto& param) { return param.param.name; });

// Two numbers that float64 tells apart and float32 does not: which of them is the maximum is decided by what the kernel was given.
TEST(Check, JudgesDecisionsByTheRoundedNumbers) {
    Graph graph;
    const ValueId x = graph.add_input("input", {{1, 1, 1, 4}, Element::Real});
    const auto pooled = graph.add(MaxPoolOp{Window::of({1, 4})}, {x}, "pool");
    graph.add_output("y", pooled[0]);
    graph.add_output("where", pooled[1]);
    const std::map<std::string, Tensor> feeds{{"input", Tensor::of<double>({1, 1, 1, 4}, {0.5, 1, 1 + 1e-12, 0.25})}};
    for (const auto& [backend, dtype] : checked()) {
        Session session({.backend = backend, .dtype = dtype, .threads = 1});
        EXPECT_LE(worst_of(check_instructions(session.compile(graph), session.backend(), parts_of(feeds), {1, 7})).error,
                  allowed_error(dtype))
            << backend << " in " << name_of(dtype);
    }
}

// A check that cannot fail proves nothing: a wrong number in the inputs of one instruction is found.
TEST(Check, FindsAWrongKernel) {
    const Graph graph = training_graph(make_model("lenet5", {.batch = 2}), {.rule = {.rule = Rule::Sgd}});
    Session session({.dtype = DType::f32});
    const Program program = session.compile(graph);
    const auto feeds = random_feeds(graph, 10);
    EXPECT_LE(worst_of(check_instructions(program, session.backend(), parts_of(feeds), {1, 7})).error, 1e-4);

    class Wrong : public Kernel {
      public:
        explicit Wrong(std::unique_ptr<Kernel> right, float* victim) : right_(std::move(right)), victim_(victim) {}
        void run(const StepContext& context) override {
            right_->run(context);
            *victim_ += 0.01f;
        }

      private:
        std::unique_ptr<Kernel> right_;
        float* victim_;
    };
    // The reference with a fault in every fully connected layer.
    class Faulty : public Backend {
      public:
        explicit Faulty(Backend& right) : right_(right) {}
        const Target& target() const override { return right_.target(); }
        std::unique_ptr<Memory> allocate(int64_t bytes) override { return right_.allocate(bytes); }
        std::unique_ptr<Kernel> prepare(const KernelRequest& request) override {
            auto kernel = right_.prepare(request);
            if (!std::holds_alternative<LinearOp>(request.problem.steps[0].op)) return kernel;
            return std::make_unique<Wrong>(std::move(kernel), static_cast<float*>(request.outputs[0].data));
        }
        std::unique_ptr<Kernel> prepare_copy(const Operand& src, const Operand& dst) override { return right_.prepare_copy(src, dst); }
        void upload(const Tensor& src, const Operand& dst) override { right_.upload(src, dst); }
        void download(const Operand& src, Tensor& dst) override { right_.download(src, dst); }
        void synchronize() override { right_.synchronize(); }

      private:
        Backend& right_;
    };
    Faulty faulty(session.backend());
    const InstructionError worst = worst_of(check_instructions(program, faulty, parts_of(feeds), {1, 7}));
    EXPECT_GT(worst.error, 1e-3);
    EXPECT_NE(worst.text.find("linear"), std::string::npos) << worst.text;
}

}  // namespace
}  // namespace convoy
