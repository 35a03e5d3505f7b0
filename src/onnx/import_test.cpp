// What an import makes of each family of ops, and what it says when it cannot. That the numbers are right is for tests/onnx.
#include "onnx/import.h"

#include <random>

#include <gtest/gtest.h>

#include "base/test_count.h"
#include "onnx/testing.h"

namespace convoy::onnx {
namespace {

using testing::TestModel;

std::string error_of(const TestModel& model, const ImportOptions& options = {}) {
    try {
        model.import(options);
        return "";
    } catch (const Error& e) {
        return e.what();
    }
}

std::vector<std::string> ops_of(const Imported& imported) {
    std::vector<std::string> names;
    for (const convoy::Node& node : imported.graph.nodes()) names.emplace_back(text_of(node.op));
    return names;
}
using Ops = std::vector<std::string>;

TestModel convolution(const Attributes& attributes = {}) {
    TestModel model;
    model.input("x", {2, 3, 8, 8}).weight("c.weight", {4, 3, 3, 3}, std::vector<float>(108, 0.1f)).weight("c.bias", {4}, {1, 2, 3, 4});
    model.node("Conv", {"x", "c.weight", "c.bias"}, {"y"}, attributes).output("y");
    return model;
}

TEST(OnnxImport, ConvolutionWithItsParameters) {
    const Imported made =
        convolution(Attributes().integers("pads", std::vector<int64_t>{1, 1, 1, 1}).integers("strides", std::vector<int64_t>{2, 2}))
            .import();
    EXPECT_EQ(ops_of(made), (Ops{"conv 3x3 /2 pad 1", "bias"}));
    EXPECT_EQ(made.graph.shape(made.outputs[0].value), (Shape{2, 4, 4, 4}));
    EXPECT_EQ(made.graph.nodes()[0].layer, "c");
    ASSERT_EQ(made.graph.states().size(), 2u);
    EXPECT_EQ(made.graph.states()[0].name, "c.weight");
    EXPECT_EQ(made.graph.states()[0].kind, StateKind::Parameter);
    EXPECT_TRUE(made.graph.states()[0].decays);
    EXPECT_FALSE(made.graph.states()[1].decays);
    EXPECT_EQ(made.graph.states()[1].initializer.values, (std::vector<double>{1, 2, 3, 4}));
}

TEST(OnnxImport, BatchNormAndDropoutFollowTheMode) {
    TestModel model;
    model.input("x", {4, 2, 3, 3});
    for (const char* name : {"s", "b", "m", "v"}) model.weight(name, {2}, {1, 1});
    model.node("BatchNormalization", {"x", "s", "b", "m", "v"}, {"n"}).node("Dropout", {"n"}, {"y"}).output("y");
    EXPECT_EQ(ops_of(model.import({.mode = NodeMode::Evaluation})), (Ops{"running_stats", "batch_normalize"}));
    const Imported training = model.import({.mode = NodeMode::Training});
    EXPECT_EQ(ops_of(training), (Ops{"batch_stats", "running_update", "batch_normalize", "dropout"}));
    EXPECT_EQ(training.graph.stores().size(), 2u);
    EXPECT_EQ(training.graph.states()[2].kind, StateKind::Buffer);
    EXPECT_EQ(ops_of(model.import({.mode = NodeMode::Training, .dropout = false})).size(), 3u);
}

// Shape -> Gather -> Unsqueeze -> Concat -> Reshape, as exporters write a flattening.
TEST(OnnxImport, ShapesAreComputedWhenTheModelIsRead) {
    TestModel model(11);
    model.input("x", {2, 3, 4}).node("Shape", {"x"}, {"s"});
    model.integers("zero", {0}).integers("rest", {-1});
    model.node("Gather", {"s", "zero"}, {"n"}, Attributes().integer("axis", 0))
        .node("Concat", {"n", "rest"}, {"to"}, Attributes().integer("axis", 0));
    model.node("Reshape", {"x", "to"}, {"y"}).output("y");
    const Imported made = model.import();
    EXPECT_EQ(ops_of(made), (Ops{"reshape"}));
    EXPECT_EQ(made.graph.shape(made.outputs[0].value), (Shape{2, 12}));
    // The same for another batch.
    const Imported other = model.import({.shapes = {{"x", {5, 3, 4}}}});
    EXPECT_EQ(other.graph.shape(other.outputs[0].value), (Shape{5, 12}));
}

TEST(OnnxImport, AReshapeForOneBatchFitsAnother) {
    TestModel model;
    model.input("x", {1, 3, 4}).integers("to", {1, 12}).node("Reshape", {"x", "to"}, {"y"}).output("y");
    const Imported made = model.import({.shapes = {{"x", {7, 3, 4}}}});
    EXPECT_EQ(made.graph.shape(made.outputs[0].value), (Shape{7, 12}));
}

TEST(OnnxImport, PiecesOfEveryFamily) {
    TestModel model;
    model.input("x", {2, 4, 6, 6})
        .weight("half", {}, {0.5})
        .weight("channels", {4, 1, 1}, {1, 2, 3, 4})
        .weight("slope", {4, 1, 1}, {1, 1, 1, 1});
    model.integers("axes", {2, 3}).weight("low", {}, {0}).weight("high", {}, {6}).weight("scales", {4}, {1, 1, 2, 2});
    model.node("Mul", {"x", "half"}, {"a"})
        .node("Add", {"a", "channels"}, {"b"})
        .node("Clip", {"b", "low", "high"}, {"c"})
        .node("PRelu", {"c", "slope"}, {"d"});
    model.node("MaxPool", {"d"}, {"e"},
               Attributes().integers("kernel_shape", std::vector<int64_t>{2, 2}).integers("strides", std::vector<int64_t>{2, 2}));
    model.node("Resize", {"e", "", "scales"}, {"f"},
               Attributes().text("mode", "nearest").text("coordinate_transformation_mode", "asymmetric").text("nearest_mode", "floor"));
    model.node("Concat", {"f", "d"}, {"g"}, Attributes().integer("axis", 1))
        .node("ReduceSum", {"g", "axes"}, {"h"}, Attributes().integer("keepdims", 0));
    model.node("Softmax", {"h"}, {"y"}).output("y");
    const Imported made = model.import();
    EXPECT_EQ(ops_of(made), (Ops{"scale", "reshape", "bias", "relu6", "reshape", "prelu", "max_pool 2x2 /2", "upsample", "concat", "sum_to",
                                 "reshape", "softmax"}));
    EXPECT_EQ(made.graph.shape(made.outputs[0].value), (Shape{2, 8}));
}

TEST(OnnxImport, UnknownOpsAreRefusedByTypeAndName) {
    TestModel model;
    model.input("x", {2, 3}).node("Einsum", {"x"}, {"y"}).output("y");
    EXPECT_EQ(error_of(model), "Einsum \"the Einsum\": this op is not supported");
    EXPECT_NE(error_of(convolution(Attributes().integer("sparkle", 1))).find("attribute \"sparkle\" is not supported"), std::string::npos);
}

TEST(OnnxImport, ErrorsNameTheNode) {
    TestModel circle;
    circle.input("x", {2, 3}).node("Add", {"x", "b"}, {"a"}).node("Relu", {"a"}, {"b"}).output("b");
    EXPECT_EQ(error_of(circle),
              "Add \"the Add\": it reads \"b\", which \"the Relu\" makes after it: the graph is a circle, or not in order");
    TestModel missing;
    missing.input("x", {2, 3}).node("Add", {"x", "nowhere"}, {"y"}).output("y");
    EXPECT_EQ(error_of(missing), "Add \"the Add\": it reads \"nowhere\", which nothing makes");
    TestModel no_output;
    no_output.input("x", {2, 3}).node("Relu", {"x"}, {"y"}).output("z");
    EXPECT_EQ(error_of(no_output), "nothing makes its output \"z\"");
    TestModel twice;
    twice.input("x", {2, 3}).node("Relu", {"x"}, {"y"}).node("Relu", {"x"}, {"y"}).output("y");
    EXPECT_NE(error_of(twice).find("\"y\" is made twice"), std::string::npos);
    TestModel wrong;
    wrong.input("x", {2, 5, 8, 8}).weight("w", {4, 3, 3, 3}, std::vector<float>(108, 1)).node("Conv", {"x", "w"}, {"y"}).output("y");
    EXPECT_NE(error_of(wrong).find("Conv \"the Conv\": conv"), std::string::npos) << error_of(wrong);
    EXPECT_NE(error_of(wrong).find("expected 4x5x3x3"), std::string::npos) << error_of(wrong);
    TestModel dynamic;
    dynamic.input("x", {2, 3}).input("s", {1}, DataType::Int64).node("Reshape", {"x", "s"}, {"y"}).output("y");
    EXPECT_THROW(dynamic.import(), NeedsConstant);
    EXPECT_EQ(dynamic.import({.constants = {{"s", Tensor::of<int64_t>({1}, {6})}}}).graph.nodes().size(), 1u);
    TestModel old(18);
    old.input("x", {2}).node("Relu", {"x"}, {"y"}).output("y");
    EXPECT_NE(error_of(old).find("operator set 18"), std::string::npos);
}

// Sizes that a file of a few bytes can claim, and nothing can hold.
TEST(OnnxImport, AbsurdSizesAreRefused) {
    const int64_t huge = int64_t{1} << 62;
    EXPECT_NE(error_of(convolution(Attributes().integers("dilations", std::vector<int64_t>{huge, huge}))), "");
    EXPECT_NE(error_of(convolution(Attributes().integers("pads", std::vector<int64_t>{huge, huge, huge, huge}))), "");
    EXPECT_NE(error_of(convolution(Attributes().integers("strides", std::vector<int64_t>{0, 0}))), "");
    EXPECT_NE(error_of(convolution(Attributes().integer("group", 0))), "");
    EXPECT_NE(error_of(convolution(Attributes().integer("group", -1))), "");
    TestModel shape;
    shape.input("x", {2})
        .integers("s", {1 << 30, 1 << 30})
        .node("ConstantOfShape", {"s"}, {"c"})
        .node("Add", {"x", "c"}, {"y"})
        .output("y");
    EXPECT_NE(error_of(shape), "");
    TestModel expand;
    expand.input("x", {1, 1}).integers("s", {1 << 30, 1 << 30}).node("Expand", {"x", "s"}, {"y"}).output("y");
    EXPECT_NE(error_of(expand), "");
    TestModel order;
    order.input("x", {2, 3}).node("Transpose", {"x"}, {"y"}, Attributes().integers("perm", std::vector<int64_t>{9, 0})).output("y");
    EXPECT_NE(error_of(order).find("is no order of the dims of 2x3"), std::string::npos);
    TestModel input;
    input.input("x", {huge, 4}).node("Relu", {"x"}, {"y"}).output("y");
    EXPECT_NE(error_of(input), "");
    TestModel external;
    external.input("x", {1}).tensor("w", DataType::String, {1}, "").node("Relu", {"x"}, {"y"}).output("y");
    EXPECT_NE(error_of(external).find("string"), std::string::npos);
}

// Damaged files: whatever the damage, an Error or another model. The same for libFuzzer, which goes on for longer, is tests/fuzz/onnx_fuzz.cpp.
TEST(OnnxImport, DamageIsNeverMoreThanAnError) {
    TestModel pieces;
    pieces.input("x", {2, 4, 6, 6})
        .weight("w", {4, 4, 3, 3}, std::vector<float>(144, 0.1f))
        .weight("half", {}, {0.5})
        .weight("c", {4}, {1, 2, 3, 4});
    pieces.integers("to", {0, -1})
        .integers("starts", {1, 5})
        .integers("ends", {3, -100})
        .integers("steps", {2, -1})
        .integers("axes", {0, 1});
    pieces.node("Conv", {"x", "w", "c"}, {"a"}, Attributes().integers("pads", std::vector<int64_t>{1, 1, 1, 1}))
        .node("Mul", {"a", "half"}, {"b"});
    pieces.node("BatchNormalization", {"b", "c", "c", "c", "c"}, {"d"})
        .node("MaxPool", {"d"}, {"e", "i"}, Attributes().integers("kernel_shape", std::vector<int64_t>{2, 2}));
    pieces.node("Reshape", {"e", "to"}, {"f"})
        .node("Slice", {"f", "starts", "ends", "axes", "steps"}, {"g"})
        .node("Softmax", {"g"}, {"y"})
        .output("y");
    const std::string whole = pieces.bytes();
    std::mt19937_64 random(1);
    const auto below = [&](size_t limit) { return static_cast<size_t>(random() % limit); };
    int errors = 0;
    for (int round = 0; round < test_count(3000, 300000); ++round) {
        std::string bytes = whole;
        for (size_t change = 0; change <= below(4); ++change) {
            const size_t at = below(bytes.size());
            switch (below(4)) {
                case 0: bytes[at] = static_cast<char>(random()); break;
                case 1: bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8))); break;
                case 2: bytes.erase(at, 1 + below(8)); break;
                default: bytes.insert(at, bytes.substr(below(bytes.size()), below(32))); break;
            }
        }
        try {
            import_graph(parse_model(bytes), bytes, {.mode = NodeMode::Training});
        } catch (const Error&) {
            ++errors;
        }
    }
    EXPECT_GT(errors, 100);
}

}  // namespace
}  // namespace convoy::onnx
