// Models of the zoo written as ONNX and read again: the same outputs, parameters of the same names, and in training the same gradients.
#include <filesystem>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/test_count.h"
#include "exec/state.h"
#include "kernels/reference/reference.h"
#include "model/autodiff.h"
#include "model/zoo.h"
#include "onnx/export.h"
#include "onnx/model_source.h"

namespace convoy {
namespace {

namespace fs = std::filesystem;

class OnnxRoundTrip : public ::testing::Test {
  protected:
    OnnxRoundTrip() : folder_(fs::temp_directory_path() / ("convoy-onnx-" + std::to_string(::getpid()))) {
        fs::create_directories(folder_);
    }
    ~OnnxRoundTrip() override { fs::remove_all(folder_); }
    const fs::path folder_;
};

Tensor noise(const Shape& shape, const std::string& name) {
    return initial_value({.name = name, .shape = shape, .initializer = {.kind = Initializer::Kind::Normal, .value = 1}}, DType::f64, 3);
}
// First values, but running statistics and biases that do something.
Tensor weight_of(const StateSpec& spec) {
    Tensor tensor = initial_value(spec, DType::f64, 5);
    if (spec.shape.size() > 1) return tensor;
    const Tensor extra = noise(spec.shape, spec.name);
    for (int64_t i = 0; i < tensor.numel(); ++i) tensor.as<double>()[static_cast<size_t>(i)] += 0.1 * std::abs(element(extra, i));
    return tensor;
}
std::map<std::string, Tensor> feeds_of(const Graph& graph, const Tensor& input) {
    std::map<std::string, Tensor> feeds{{"input", input}};
    for (const StateSpec& spec : graph.states())
        feeds[spec.name] = spec.initializer.kind == Initializer::Kind::File ? initial_value(spec, DType::f64, 0) : weight_of(spec);
    return feeds;
}

struct Case {
    const char* name;
    Shape input;
    int64_t classes;
};
std::vector<Case> cases() {
    std::vector<Case> list{{"lenet5", {1, 28, 28}, 10}, {"squeezenet1_1", {3, 40, 40}, 5}, {"resnet20", {3, 16, 16}, 5}};
    if (test_count(0, 1) == 0) return list;
    for (const ZooEntry& entry : zoo()) {
        Shape input = entry.input;
        const bool averages = entry.name.rfind("vgg", 0) == 0 || entry.name == "alexnet";  // to a size that ONNX has only for whole shares
        const bool volume = input.size() == 4;
        if (volume && input[1] > 64) continue;  // the same network, larger
        if (!averages && !volume && input[1] == 224) input = {3, 64, 64};
        list.push_back({entry.name.c_str(), input, entry.classes > 10 ? 7 : entry.classes});
    }
    return list;
}

TEST_F(OnnxRoundTrip, ZooModels) {
    for (const Case& c : cases()) {
        SCOPED_TRACE(c.name);
        const ModelOptions one{.batch = 1, .input = c.input, .classes = c.classes, .mode = Mode::Evaluation};
        const std::string path = (folder_ / (std::string(c.name) + ".onnx")).string();
        const Model original = make_model(c.name, one);
        const auto report = onnx::export_model(path, original, weight_of, {.type = DType::f64});
        EXPECT_TRUE(report.any_batch);

        const ModelSource source = open_model(path);
        EXPECT_EQ(source.input, c.input);
        EXPECT_EQ(source.classes, c.classes);
        ModelOptions two = one;
        two.batch = 2;
        const Model again = source.make(two), expected = make_model(c.name, two);
        EXPECT_EQ(again.losses[0].kind, expected.losses[0].kind);
        const Tensor x = noise(join({2}, c.input), "x");
        const Tensor y = interpret(again.graph, feeds_of(again.graph, x), DType::f64, {}).at("output");
        EXPECT_LE(relative_error(y, interpret(expected.graph, feeds_of(expected.graph, x), DType::f64, {}).at("output")),
                  1e-6);  // attributes are floats
        for (const StateSpec& spec : expected.graph.states()) {
            const auto found = again.graph.find_state(spec.name);
            ASSERT_TRUE(found) << spec.name;
            EXPECT_EQ(again.graph.states()[static_cast<size_t>(again.graph.value(*found).state)].kind, spec.kind) << spec.name;
        }
        EXPECT_NO_THROW(training_graph(source.make({.batch = 2, .input = c.input}), {.rule = {.rule = Rule::Momentum}}));
        fs::remove(path);
    }
}

TEST_F(OnnxRoundTrip, WhatOnnxHasNoOpForIsNamed) {
    Model model = make_model("lenet5", {.mode = Mode::Evaluation});
    Graph graph;
    const ValueId x = graph.add_input("input", {{1, 2, 4, 4}, Element::Real});
    const ValueId w = graph.add_state({.name = "w", .shape = {3, 2, 2, 2, 3, 3}});
    graph.add_output("output", graph.add1(LocalConvOp{Window::of({3, 3})}, {x, w}, "untied"));
    model.graph = graph;
    try {
        onnx::export_model(folder_ / "x.onnx", model, weight_of);
        FAIL();
    } catch (const Error& e) {
        EXPECT_STREQ(e.what(), "local_conv \"untied\": ONNX has no such op");
    }
    EXPECT_FALSE(fs::exists(folder_ / "x.onnx"));
}

TEST_F(OnnxRoundTrip, FilesThatChangeOrAreMissingAreSaid) {
    const std::string path = (folder_ / "m.onnx").string();
    EXPECT_THROW(open_model(path), Error);
    onnx::export_model(path, make_model("lenet5", {.mode = Mode::Evaluation}), weight_of);
    const Model model = open_model(path).make({.batch = 2});
    fs::resize_file(path, 1000);
    EXPECT_THROW(open_model(path), Error);
    EXPECT_THROW(initial_value(model.graph.states().back(), DType::f32, 1), Error);
    EXPECT_THROW(open_model(path).make({.batch = 2, .classes = 11}), Error);
}

}  // namespace
}  // namespace convoy
