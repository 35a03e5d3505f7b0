#include "program/limits.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/error.h"

namespace convoy {
namespace {

// One way is fast by a transform and needs memory; the other takes so many times as long.
class TwoWays : public Target {
  public:
    TwoWays(std::string name, double slower) : name_(std::move(name)), slower_(slower) {}
    std::string name() const override { return name_; }
    DType storage(Element, DType compute) const override { return compute; }
    std::vector<Candidate> candidates(const Problem&) const override {
        return {{.algorithm = "quick", .workspace_bytes = 1000, .seconds = 1, .numerics = Numerics::Fast},
                {.algorithm = "plain", .workspace_bytes = 10, .seconds = slower_}};
    }

  private:
    std::string name_;
    double slower_;
};

Problem relu(int64_t size = 4) {
    const TensorDesc x = TensorDesc::whole({size, 8}, DType::f32);
    return Problem::single(UnaryOp{}, {x}, {x}, DType::f32);
}

std::string heard(const Target& target, const Limits& limits) {
    testing::internal::CaptureStderr();
    const LimitedTarget limited(target, limits);
    limited.candidates(relu());
    limited.candidates(relu(5));
    return testing::internal::GetCapturedStderr();
}

TEST(Limits, LeaveOutWhatIsPastThem) {
    const TwoWays target("a", 2);
    EXPECT_EQ(LimitedTarget(target, {}).candidates(relu()).size(), 2u);
    for (const Limits& limits : {Limits{.numerics = Numerics::Exact}, Limits{.workspace_bytes = 999}}) {
        const auto left = LimitedTarget(target, limits).candidates(relu());
        ASSERT_EQ(left.size(), 1u);
        EXPECT_EQ(left[0].algorithm, "plain");
    }
}

TEST(Limits, WhatCannotBeDoneWithinThemIsAnError) {
    const TwoWays target("b", 2);
    try {
        LimitedTarget(target, {.workspace_bytes = 9}).candidates(relu());
        ADD_FAILURE() << "no error";
    } catch (const Error& e) {
        EXPECT_NE(std::string(e.what()).find("the least it needs is 10 bytes"), std::string::npos) << e.what();
    }
}

TEST(Limits, WarnOnceWhereTheyCostMuch) {
    EXPECT_EQ(heard(TwoWays("c", 2), {.numerics = Numerics::Exact}), "");
    EXPECT_EQ(heard(TwoWays("c", 20), {}), "");
    const std::string text = heard(TwoWays("c", 20), {.numerics = Numerics::Exact});
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
    for (const char* const part : {"exact numerics", "any bytes", "plain instead of quick", "20 times"})
        EXPECT_NE(text.find(part), std::string::npos) << text;
    EXPECT_EQ(heard(TwoWays("c", 20), {.numerics = Numerics::Exact}), "");
}

}  // namespace
}  // namespace convoy
