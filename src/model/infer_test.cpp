#include <gtest/gtest.h>

#include "base/error.h"
#include "model/graph.h"

namespace convoy {
namespace {

ValueType real(Shape s) { return {s, Element::Real}; }

std::string error_of(const Op& op, const std::vector<ValueType>& in) {
    try {
        infer(op, in);
    } catch (const Error& e) {
        return e.what();
    }
    return "";
}

TEST(Infer, Convolution) {
    Window w = Window::of({3, 5});
    w.stride = {2, 1};
    w.pad_lo = {1, 2};
    w.pad_hi = {0, 2};
    EXPECT_EQ(infer(ConvOp{w, 2}, {real({4, 6, 9, 11}), real({8, 3, 3, 5})})[0].shape, (Shape{4, 8, 4, 11}));
    EXPECT_EQ(infer(ConvGradInputOp{w, 2, {9, 11}}, {real({4, 8, 4, 11}), real({8, 3, 3, 5})})[0].shape, (Shape{4, 6, 9, 11}));
    EXPECT_EQ(infer(ConvGradWeightOp{w, 2}, {real({4, 6, 9, 11}), real({4, 8, 4, 11})})[0].shape, (Shape{8, 3, 3, 5}));
    EXPECT_NE(error_of(ConvOp{w, 2}, {real({4, 6, 9, 11}), real({8, 6, 3, 5})}).find("the weight is 8x6x3x5, expected 8x3x3x5"),
              std::string::npos);
    EXPECT_NE(
        error_of(ConvOp{w, 4}, {real({4, 6, 9, 11}), real({8, 3, 3, 5})}).find("6 channels and 8 filters do not divide into 4 groups"),
        std::string::npos);
    EXPECT_NE(error_of(ConvOp{w, 1}, {real({4, 6, 1, 11}), real({8, 6, 3, 5})}).find("does not fit into 1x11"), std::string::npos);
}

TEST(Infer, PoolPositionsTakeAByteWhileTheyFit) {
    EXPECT_EQ(infer(MaxPoolOp{Window::of({16, 16})}, {real({1, 1, 16, 16})})[1].element, Element::Byte);
    EXPECT_EQ(infer(MaxPoolOp{Window::of({16, 17})}, {real({1, 1, 16, 17})})[1].element, Element::Index);
}

TEST(Infer, ErrorsNameTheLayer) {
    Graph g;
    const ValueId x = g.add_input("x", real({2, 3}));
    const ValueId w = g.add_state({.name = "fc.weight", .shape = {5, 4}});
    try {
        g.add(LinearOp{}, {x, w}, "fc");
        FAIL();
    } catch (const Error& e) {
        EXPECT_STREQ(e.what(), "linear \"fc\": the weight is 5x4, expected 5x3");
    }
}

TEST(Graph, StatesAreSharedByName) {
    Graph g;
    const ValueId a = g.add_state({.name = "w", .shape = {2}});
    EXPECT_EQ(g.add_state({.name = "w", .shape = {2}}), a);
    EXPECT_THROW(g.add_state({.name = "w", .shape = {3}}), Error);
    EXPECT_EQ(g.states().size(), 1u);
    EXPECT_FALSE(g.find_state("v").has_value());
}

}  // namespace
}  // namespace convoy
