#include "kernels/cpu/own_testing.h"

namespace convoy::cpu {
namespace {

using namespace testing;

TensorDesc whole(const Shape& shape) { return TensorDesc::whole(shape, DType::f32); }

TEST(OwnUpdate, EveryRule) {
    for (int i = 0; i < test_count(48, 500); ++i) {
        Draw draw("update", i);
        const auto implementation = make_update_implementation(some_kernels(i / 8));
        const Shape shape = draw_activation(draw, i / 8);
        UpdateOp op;
        op.rule.rule = static_cast<Rule>(i % 8);
        op.rule.weight_decay = draw.coin() ? 0 : draw.real(0, 0.1);
        op.rule.momentum = draw.real(0, 0.95);
        op.clipped = draw.coin();
        std::vector<Tensor> inputs{draw.normal(shape), draw.normal(shape),
                                   Tensor::of<double>({2}, {draw.real(1e-3, 0.5), static_cast<double>(draw.between(1, 50))})};
        const int slots = slots_of(op.rule.rule);
        for (int s = 0; s < slots; ++s) {
            inputs.push_back(draw.normal(shape));
            // Squares are positive.
            fill(inputs.back(), [&](int64_t k) { return std::abs(element(inputs.back(), k)); });
        }
        if (op.rule.rule == Rule::Lars)
            for (int norm = 0; norm < 2; ++norm)
                inputs.push_back(Tensor::of<double>({1}, {draw.between(0, 4) == 0 ? 0 : draw.real(0.1, 9)}));
        if (op.clipped) inputs.push_back(Tensor::of<double>({1}, {draw.real(0.1, 1)}));
        std::vector<TensorDesc> in;
        for (const auto& t : inputs) in.push_back(whole(t.shape()));
        expect_agreement(*implementation,
                         Problem::single(op, in, std::vector<TensorDesc>(static_cast<size_t>(1 + slots), whole(shape)), DType::f32), inputs,
                         {.number = i});
    }
}

TEST(OwnUpdate, WithoutAnEpsilonOnlyPlainMemoryIsSafe) {
    const Shape shape{3, 5, 2};
    UpdateOp op;
    op.rule.rule = Rule::AdaGrad;
    const auto layouts = [&] {
        return make_update_implementation(some_kernels(0))
            ->candidates(
                Problem::single(op, {whole(shape), whole(shape), whole({2}), whole(shape)}, {whole(shape), whole(shape)}, DType::f32), {})
            .at(0)
            .inputs;
    };
    EXPECT_EQ(layouts(), (std::vector<Layout>{Layout::same(), Layout::same(), Layout::plain(), Layout::same()}));
    op.rule.epsilon = 0;
    EXPECT_EQ(layouts(), std::vector<Layout>(4, Layout::plain()));
}

TEST(OwnUpdate, SquaredNorm) {
    for (int i = 0; i < test_count(40, 500); ++i) {
        Draw draw("norm", i);
        const Shape shape = draw_activation(draw, i);
        expect_agreement(*make_update_implementation(some_kernels(i)),
                         Problem::single(SquaredNormOp{}, {whole(shape)}, {whole({1})}, DType::f32), {draw.normal(shape)}, {.number = i});
    }
}

}  // namespace
}  // namespace convoy::cpu
