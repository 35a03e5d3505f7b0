#include "kernels/reference/elementwise.h"
#include "kernels/reference/kernel_testing.h"

namespace convoy::ref {
namespace {

using namespace testing;

constexpr StepContext kContext{.seed = 0x123456789abcdefull, .step = 17};

Tensor ones(const Shape& shape) {
    Tensor tensor(shape, DType::f64);
    for (auto& value : tensor.as<double>()) value = 1;
    return tensor;
}

TEST(Dropout, FollowsTheRandomStream) {
    const Shape shape{5, 7, 999};  // several ranges of elements, none of them a multiple of four
    const DropoutOp op{.p = 0.3, .stream = 42, .first_sample = 0};
    const Tensor x = normal(shape, "x"), y = run<double>(op, {x}, {shape}, {.context = kContext})[0];
    const RandomStream random{kContext.seed, kContext.step, op.stream};
    int64_t kept = 0;
    for (int64_t i = 0; i < x.numel(); ++i) {
        const bool keep = random.uniform(static_cast<uint64_t>(i)) >= op.p;
        kept += keep;
        ASSERT_EQ(element(y, i), keep ? element(x, i) * (1 / 0.7) : 0) << i;
    }
    EXPECT_NEAR(static_cast<double>(kept) / static_cast<double>(x.numel()), 0.7, 0.01);
    EXPECT_EQ(run<double>(op, {x}, {shape}, {.threads = 3, .context = kContext})[0], y);
    Tensor in_place = x;
    run_into<double>(op, {&in_place}, {&in_place}, {.context = kContext});
    EXPECT_EQ(in_place, y);
    EXPECT_NE(run<double>(op, {x}, {shape}, {.context = {kContext.seed, kContext.step + 1}})[0], y);
}

// Every part of a tensor drops what the whole drops there, whichever dims are split.
TEST(Dropout, PartsAgreeWithTheWhole) {
    const Shape global{4, 6, 5, 7};
    const DropoutOp op{.p = 0.5, .stream = 3, .first_sample = 0};
    const Tensor whole = run<double>(op, {ones(global)}, {global}, {.context = kContext})[0];
    struct Part {
        Dims origin, shape;
    };
    for (const auto& part : {Part{{0, 0, 0, 0}, {4, 6, 5, 7}}, Part{{2, 0, 0, 0}, {2, 6, 5, 7}}, Part{{0, 3, 0, 0}, {4, 3, 5, 7}},
                             Part{{0, 0, 2, 0}, {4, 6, 2, 7}}, Part{{0, 0, 0, 3}, {4, 6, 5, 4}}, Part{{1, 2, 1, 3}, {3, 2, 3, 2}}}) {
        SCOPED_TRACE(to_string(part.shape) + " at " + to_string(part.origin));
        Tensor x = ones(part.shape), y(part.shape, DType::f64);
        const TensorDesc desc{part.shape, DType::f64, global, part.origin};
        const std::vector<Operand> in{{x.data(), desc, {}}}, out{{y.data(), desc, {}}};
        reference<double>(op, KernelArgs{in, out, nullptr, 1, kContext});
        int64_t i = 0;
        for (int64_t a = 0; a < part.shape[0]; ++a)
            for (int64_t b = 0; b < part.shape[1]; ++b)
                for (int64_t c = 0; c < part.shape[2]; ++c)
                    for (int64_t d = 0; d < part.shape[3]; ++d) {
                        const Dims index{a + part.origin[0], b + part.origin[1], c + part.origin[2], d + part.origin[3]};
                        ASSERT_EQ(element(y, i++), element(whole, element_offset(global, Layout::plain(), index)));
                    }
    }
}

TEST(Dropout, MicroBatchesAgreeWithTheBatch) {
    const Tensor whole =
        run<double>(DropoutOp{.p = 0.5, .stream = 3, .first_sample = 0}, {ones({6, 35})}, {{6, 35}}, {.context = kContext})[0];
    const Tensor second =
        run<double>(DropoutOp{.p = 0.5, .stream = 3, .first_sample = 4}, {ones({2, 35})}, {{2, 35}}, {.context = kContext})[0];
    for (int64_t i = 0; i < second.numel(); ++i) ASSERT_EQ(element(second, i), element(whole, 4 * 35 + i));
}

TEST(Dropout, ZeroKeepsAllAndOneDropsAll) {
    const Tensor x = normal({100}, "x");
    EXPECT_EQ(run<double>(DropoutOp{.p = 0}, {x}, {{100}}, {.context = kContext})[0], x);
    expect_near(run<double>(DropoutOp{.p = 1}, {x}, {{100}}, {.context = kContext})[0], std::vector<double>(100, 0), 0);
}

}  // namespace
}  // namespace convoy::ref
