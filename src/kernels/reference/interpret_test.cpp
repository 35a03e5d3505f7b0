#include "kernels/reference/test_support.h"

namespace convoy::ref {
namespace {

using namespace testing;

// y = relu(x w^T + b); b is stored as twice itself.
Graph small_graph() {
    Graph graph;
    const ValueId x = graph.add_input("x", {{2, 3}, Element::Real});
    const ValueId w = graph.add_state({.name = "w", .shape = {2, 3}}), b = graph.add_state({.name = "b", .shape = {2}});
    const ValueId sum = graph.add1(BiasOp{1}, {graph.add1(LinearOp{}, {x, w}, "fc"), b}, "fc");
    graph.add_output("sum", sum);
    graph.add_output("y", graph.add1(UnaryOp{Unary::Relu}, {sum}, "relu"));
    graph.add_store(b, graph.add1(ScaleOp{2}, {b}, "b"));
    return graph;
}

std::map<std::string, Tensor> small_feeds() {
    return {{"x", doubles({2, 3}, {1, 2, 3, 4, 5, 6})}, {"w", doubles({2, 3}, {1, 0, -1, 2, 1, 0})}, {"b", doubles({2}, {0.5, -5})}};
}

TEST(Interpret, OutputsAndStores) {
    for (const DType type : {DType::f64, DType::f32}) {
        const auto results = interpret(small_graph(), small_feeds(), type, {});
        ASSERT_EQ(results.size(), 3u);
        for (const auto& [name, tensor] : results) EXPECT_EQ(tensor.dtype(), type) << name;
        expect_near(results.at("sum"), {-1.5, -1, -1.5, 8});
        expect_near(results.at("y"), {0, 0, 0, 8});
        expect_near(results.at("store:b"), {1, -10});
    }
}

TEST(Interpret, ConvertsFeedsAndIndices) {
    Graph graph;
    const ValueId logits = graph.add_input("logits", {{2, 2}, Element::Real}), target = graph.add_input("target", {{2}, Element::Index});
    graph.add_output("correct", graph.add1(CorrectOp{}, {logits, target}, "correct"));
    const auto results = interpret(
        graph, {{"logits", Tensor::of<float>({2, 2}, {1, 2, 3, 1})}, {"target", Tensor::of<int64_t>({2}, {1, 1})}}, DType::f64, {});
    expect_near(results.at("correct"), {1});
}

TEST(Interpret, MaximaKeepTheirPlaces) {
    Graph graph;
    const ValueId x = graph.add_input("x", {{1, 1, 4}, Element::Real});
    const Window window{{2}, {2}, {1}, {0}, {0}};
    const auto pooled = graph.add(MaxPoolOp{window}, {x}, "pool");
    graph.add_output("y", pooled[0]);
    graph.add_output("dx", graph.add1(MaxPoolGradOp{window, {4}}, {pooled[0], pooled[1]}, "pool"));
    const auto results = interpret(graph, {{"x", doubles({1, 1, 4}, {1, 2, 4, 3})}}, DType::f32, {});
    expect_near(results.at("y"), {2, 4});
    expect_near(results.at("dx"), {0, 2, 4, 0});
}

// Large enough for several threads and a workspace.
TEST(Interpret, LargeConvolution) {
    Graph graph;
    const Window window = Window::of({3, 3});
    const ValueId x = graph.add_input("x", {{4, 8, 34, 34}, Element::Real}), w = graph.add_state({.name = "w", .shape = {8, 8, 3, 3}});
    graph.add_output("y", graph.add1(ConvOp{window, 1}, {x, w}, "conv"));
    Draw draw("large", 0);
    const Tensor xs = draw.normal({4, 8, 34, 34}), ws = draw.normal({8, 8, 3, 3});
    const auto results = interpret(graph, {{"x", xs}, {"w", ws}}, DType::f64, {});
    EXPECT_LT(relative_error(results.at("y"), run_op1(ConvOp{window, 1}, {xs, ws}, {4, 8, 32, 32})), 1e-13);
}

std::string message_of(const std::map<std::string, Tensor>& feeds, DType type) {
    try {
        interpret(small_graph(), feeds, type, {});
    } catch (const Error& e) {
        return e.what();
    }
    return "";
}

TEST(Interpret, SaysWhatIsWrong) {
    auto feeds = small_feeds();
    feeds.erase("w");
    EXPECT_EQ(message_of(feeds, DType::f64), "no feed for state \"w\" of shape 2x3");
    feeds = small_feeds();
    feeds.erase("x");
    EXPECT_EQ(message_of(feeds, DType::f64), "no feed for input \"x\" of shape 2x3");
    feeds = small_feeds();
    feeds["b"] = doubles({3}, {1, 2, 3});
    EXPECT_EQ(message_of(feeds, DType::f64), "the feed \"b\" is 3, expected 2");
    EXPECT_EQ(message_of(small_feeds(), DType::bf16), "the reference backend computes in f64 or f32, not bf16");
}

}  // namespace
}  // namespace convoy::ref
