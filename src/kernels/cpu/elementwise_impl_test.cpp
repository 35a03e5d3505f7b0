#include "kernels/cpu/own_testing.h"

namespace convoy::cpu {
namespace {

using namespace testing;

Problem same_shapes(const Op& op, const Shape& shape, int inputs) {
    const auto desc = TensorDesc::whole(shape, DType::f32);
    return Problem::single(op, std::vector<TensorDesc>(static_cast<size_t>(inputs), desc), {desc}, DType::f32);
}

TEST(OwnElementwise, Unary) {
    for (int i = 0; i < test_count(48, 500); ++i) {
        Draw draw("unary", i);
        const auto implementation = make_elementwise_implementation(some_kernels(i / 8));
        const Shape shape = draw_activation(draw, i / 8);
        const auto kind = static_cast<Unary>(i % 8);
        Tensor x = draw.normal(shape);
        const double spread = draw.real(0.01, 8);
        fill(x, [&](int64_t k) { return spread * element(x, k); });
        const Tensor dy = draw.normal(shape);
        const UnaryOp op{kind, 0.2};
        expect_agreement(*implementation, same_shapes(op, shape, 1), {x}, {.number = i});
        const Tensor y = reference_outputs(same_shapes(op, shape, 1), {x}, {})[0];
        expect_agreement(*implementation, same_shapes(UnaryGradOp{kind, 0.2}, shape, 2), {grad_reads_output(kind) ? y : x, dy},
                         {.number = i});
    }
}

TEST(OwnElementwise, UnaryOfNaNAndOfTheLarge) {
    const auto tables = vec::vector_kernel_tables();
    for (int k = 0; k < tables.count; ++k)
        for (int kind = 0; kind < 8; ++kind) {
            const auto& kernels = *tables.tables[k];
            SCOPED_TRACE(std::string(kernels.name) + " " + std::string(name_of(static_cast<Unary>(kind))));
            const auto implementation = make_elementwise_implementation(kernels);
            const auto run = [&](const Op& op, const std::vector<Tensor>& inputs) {
                const Problem problem = same_shapes(op, {40}, static_cast<int>(inputs.size()));
                const auto candidates = resolved(problem, implementation->candidates(problem, {}).at(0), 16);
                return CandidateRun(*implementation, problem, candidates.at(0), {}, inputs)({})[0];
            };
            Tensor x({40}, DType::f64), one({40}, DType::f64);
            fill(x, [](int64_t i) { return i == 17 ? std::nan("") : i % 2 == 0 ? 1000 : -1000; });
            fill(one, [](int64_t) { return 1; });
            const UnaryOp op{static_cast<Unary>(kind), 0.2};
            const Tensor y = run(op, {x}), expected = reference_outputs(same_shapes(op, {40}, 1), {x}, {})[0];
            for (int64_t i = 0; i < 40; ++i) {
                if (i == 17)
                    EXPECT_TRUE(std::isnan(element(y, i)));
                else
                    EXPECT_EQ(element(y, i), element(expected, i)) << i;
            }
            EXPECT_TRUE(std::isnan(element(run(UnaryGradOp{op.kind, 0.2}, {one, x}), 17)));
        }
}

TEST(OwnElementwise, SumsAndProducts) {
    for (int i = 0; i < test_count(40, 500); ++i) {
        Draw draw("sums", i);
        const auto implementation = make_elementwise_implementation(some_kernels(i));
        const Shape shape = draw_activation(draw, i);
        const int count = static_cast<int>(draw.between(2, 6));
        std::vector<Tensor> inputs;
        for (int k = 0; k < count; ++k) inputs.push_back(draw.normal(shape));
        expect_agreement(*implementation, same_shapes(AddOp{}, shape, count), inputs, {.number = i});
        ProblemBuilder b;
        std::vector<int> all;
        for (int k = 0; k < count; ++k) all.push_back(b.input(shape));
        const int y = b.output(shape), sum = b.inside(shape);
        b.step(AddOp{}, all, {sum}).step(UnaryOp{}, {sum}, {y});
        expect_agreement(*implementation, b.problem, inputs, {.number = i});
        expect_agreement(*implementation, same_shapes(MulOp{}, shape, 2), {inputs[0], inputs[1]}, {.number = i});
        expect_agreement(*implementation, same_shapes(ScaleOp{draw.real(-2, 2)}, shape, 1), {inputs[0]}, {.number = i});
    }
}

TEST(OwnElementwise, Bias) {
    for (int i = 0; i < test_count(40, 500); ++i) {
        Draw draw("bias", i);
        const auto implementation = make_elementwise_implementation(some_kernels(i));
        const Shape shape = draw_activation(draw, i);
        // Over the channels, or over all dims from some dim on.
        const int axis = i % 3 == 2 ? static_cast<int>(draw.between(1, shape.size() - 1)) : 1, rank = i % 3 == 2 ? shape.size() - axis : 1;
        const Shape bias = shape.slice(axis, axis + rank);
        const Tensor x = draw.normal(shape), b = draw.normal(bias);
        const auto whole = [](const Shape& s) { return TensorDesc::whole(s, DType::f32); };
        expect_agreement(*implementation, Problem::single(BiasOp{axis}, {whole(shape), whole(bias)}, {whole(shape)}, DType::f32), {x, b},
                         {.number = i});
        expect_agreement(*implementation, Problem::single(BiasGradOp{axis, rank}, {whole(shape)}, {whole(bias)}, DType::f32), {x},
                         {.tolerance = 1e-5, .number = i});
        ProblemBuilder builder;
        const int tx = builder.input(shape), tb = builder.input(bias), y = builder.output(shape), z = builder.inside(shape);
        builder.step(BiasOp{axis}, {tx, tb}, {z}).step(UnaryOp{}, {z}, {y});
        expect_agreement(*implementation, builder.problem, {x, b}, {.number = i});
    }
}

TEST(OwnElementwise, PRelu) {
    for (int i = 0; i < test_count(40, 500); ++i) {
        Draw draw("prelu", i);
        const auto implementation = make_elementwise_implementation(some_kernels(i));
        const Shape shape = draw_activation(draw, i), slopes{i % 3 == 0 ? 1 : shape[1]};
        const Tensor x = draw.normal(shape), dy = draw.normal(shape), slope = draw.normal(slopes);
        const auto whole = [](const Shape& s) { return TensorDesc::whole(s, DType::f32); };
        expect_agreement(*implementation, Problem::single(PReluOp{}, {whole(shape), whole(slopes)}, {whole(shape)}, DType::f32), {x, slope},
                         {.number = i});
        expect_agreement(*implementation,
                         Problem::single(PReluGradInputOp{}, {whole(shape), whole(slopes), whole(shape)}, {whole(shape)}, DType::f32),
                         {x, slope, dy}, {.number = i});
        expect_agreement(*implementation,
                         Problem::single(PReluGradSlopeOp{slopes[0]}, {whole(shape), whole(shape)}, {whole(slopes)}, DType::f32), {x, dy},
                         {.tolerance = slopes[0] == 1 ? 1e-4 : 1e-5, .number = i});
    }
}

TEST(OwnElementwise, DropoutDropsWhatTheReferenceDrops) {
    for (int i = 0; i < test_count(40, 500); ++i) {
        Draw draw("dropout", i);
        const auto implementation = make_elementwise_implementation(some_kernels(i));
        const Shape shape = draw_activation(draw, i);
        TensorDesc desc = TensorDesc::whole(shape, DType::f32);
        // A part of a larger tensor.
        if (draw.coin())
            for (int d = 0; d < shape.size(); ++d) {
                desc.origin[d] = draw.between(0, 3);
                desc.global[d] = desc.origin[d] + shape[d] + draw.between(0, 3);
            }
        // Bits above 2^32 count, too.
        const int64_t first_sample = draw.coin() ? 0 : draw.between(0, 1) == 0 ? 5 : int64_t{1} << 40;
        const DropoutOp op{i % 8 == 0 ? 0 : i % 8 == 1 ? 0.5 : draw.real(0, 0.999), static_cast<uint32_t>(i), first_sample};
        const Problem problem = Problem::single(op, {desc}, {desc}, DType::f32);
        const Tensor x = draw.normal(shape);
        expect_agreement(*implementation, problem, {x}, {.tolerance = 1e-7, .number = i});
        const auto expected = reference_outputs(problem, {x}, {.seed = 1ull << 40, .step = 9})[0];
        for (const auto& candidate : implementation->candidates(problem, {})) {
            const auto found = CandidateRun(*implementation, problem, candidate, {}, {x})({.seed = 1ull << 40, .step = 9})[0];
            for (int64_t k = 0; k < x.numel(); ++k) ASSERT_EQ(element(found, k) == 0, element(expected, k) == 0) << k;
        }
    }
}

}  // namespace
}  // namespace convoy::cpu
