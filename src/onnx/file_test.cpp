#include "onnx/file.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "onnx/testing.h"

namespace convoy::onnx {
namespace {

using testing::TestModel;

std::string error_of(std::string_view bytes) {
    try {
        parse_model(bytes);
        return "";
    } catch (const Error& e) {
        return e.what();
    }
}

TestModel small() {
    TestModel model;
    model.input("x", {1, 2})
        .weight("w", {2, 2}, {1, 2, 3, 4})
        .node("Gemm", {"x", "w"}, {"y"}, Attributes().integer("transB", 1).real("alpha", 0.5))
        .output("y");
    return model;
}

TEST(OnnxFile, ReadsWhatIsWritten) {
    const std::string bytes = small().bytes();
    const ModelProto model = parse_model(bytes);
    EXPECT_EQ(model.opset(), 13);
    ASSERT_EQ(model.nodes.size(), 1u);
    EXPECT_EQ(model.nodes[0].op, "Gemm");
    EXPECT_EQ(model.nodes[0].inputs, (std::vector<std::string_view>{"x", "w"}));
    ASSERT_EQ(model.nodes[0].attributes.size(), 2u);
    EXPECT_EQ(model.nodes[0].attributes[0].i, 1);
    EXPECT_EQ(model.nodes[0].attributes[1].f, 0.5f);
    ASSERT_EQ(model.initializers.size(), 1u);
    EXPECT_EQ(read_tensor(model.initializers[0]), Tensor::of<float>({2, 2}, {1, 2, 3, 4}));
    EXPECT_EQ(model.inputs[0].shape[1].size, 2);
}

// Every way to cut a file short is an Error or another, smaller model, never anything else.
TEST(OnnxFile, EveryTruncationIsAnError) {
    const std::string bytes = small().bytes();
    int errors = 0;
    for (size_t length = 0; length < bytes.size(); ++length) errors += !error_of(std::string_view(bytes).substr(0, length)).empty();
    EXPECT_EQ(errors, static_cast<int>(bytes.size()));
}

TEST(OnnxFile, ClaimsAreComparedWithWhatIsThere) {
    WireWriter claims;
    claims.begin_bytes(7, uint64_t{1} << 60);
    EXPECT_NE(error_of(claims.text()).find("it ends inside a field"), std::string::npos);
    EXPECT_NE(error_of("").find("no graph"), std::string::npos);
    EXPECT_NE(error_of("this is no model at all").find(""), std::string::npos);

    TestModel huge;
    huge.tensor("w", DataType::Float, {1 << 20, 1 << 20, 1 << 20}, "1234").node("Relu", {"w"}, {"y"});
    EXPECT_NE(error_of(huge.bytes()).find("impossible shape"), std::string::npos);
    TestModel large;
    large.tensor("w", DataType::Float, {1 << 20, 1 << 10}, "1234").node("Relu", {"w"}, {"y"});
    const std::string bytes = large.bytes();
    EXPECT_THROW(read_tensor(parse_model(bytes).initializers[0]), Error);
}

// Two bytes each would become a few hundred in memory.
TEST(OnnxFile, WhatHasNoNameIsRefused) {
    for (const auto& [field, what] : {std::pair(5, "initialiser 0"), std::pair(11, "input 0"), std::pair(12, "output 0")}) {
        WireWriter graph, model;
        graph.bytes(field, "");
        model.bytes(7, graph.text());
        EXPECT_NE(error_of(model.text()).find(fmt::format("{} has no name", what)), std::string::npos) << error_of(model.text());
    }
}

TEST(OnnxFile, TypedDataAndHalves) {
    WireWriter halves;
    halves.number(1, 2);
    halves.number(2, 10);
    halves.number(5, 0x3c00);  // 1
    halves.number(5, 0xc000);  // -2
    EXPECT_EQ(read_tensor(parse_tensor(halves.text())), Tensor::of<float>({2}, {1, -2}));
    WireWriter reals;
    reals.number(1, 2);
    reals.number(2, 1);
    reals.real(4, 1.5f);
    reals.real(4, -3);
    EXPECT_EQ(read_tensor(parse_tensor(reals.text())), Tensor::of<float>({2}, {1.5f, -3}));
    WireWriter outside;
    outside.number(1, 2);
    outside.number(2, 1);
    outside.number(14, 1);
    EXPECT_THROW(read_tensor(parse_tensor(outside.text())), Error);
    WireWriter strings;
    strings.number(2, 8);
    EXPECT_THROW(read_tensor(parse_tensor(strings.text())), Error);
}

}  // namespace
}  // namespace convoy::onnx
