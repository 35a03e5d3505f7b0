#include "kernels/cpu/own_testing.h"

namespace convoy::cpu {
namespace {

using namespace testing;

TensorDesc whole(const Shape& shape, DType type = DType::f32) { return TensorDesc::whole(shape, type); }

TEST(OwnLoss, CrossEntropyAndAccuracy) {
    for (int i = 0; i < test_count(60, 500); ++i) {
        Draw draw("entropy", i);
        const auto implementation = make_loss_implementation(some_kernels(i));
        const Shape shape = draw_activation(draw, i), lines = join({shape[0]}, shape.slice(2));
        const int64_t classes = shape[1];
        Tensor logits = draw.normal(shape);
        const double spread = draw.real(0.1, 6);
        fill(logits, [&](int64_t k) { return spread * element(logits, k); });
        std::vector<TensorDesc> descs{whole(shape), whole(lines, DType::i32)};
        std::vector<Tensor> inputs{logits, draw.labels(lines, classes)};
        if (i % 3 > 0) {
            Tensor weights = draw.normal({classes});
            fill(weights, [&](int64_t k) { return 0.1 + std::abs(element(weights, k)); });
            descs.push_back(whole({classes}));
            inputs.push_back(weights);
        }
        if (i % 3 > 1) {
            descs.push_back(whole({1}));
            inputs.push_back(Tensor::of<double>({1}, {draw.real(1, 50)}));
        }
        const double smoothing = draw.coin() ? 0 : draw.real(0, 0.3), scale = draw.real(0.01, 2);
        expect_agreement(*implementation, Problem::single(CrossEntropyOp{smoothing, scale}, descs, {whole({1})}, DType::f32), inputs,
                         {.number = i});
        if (classes > 1)
            expect_agreement(*implementation, Problem::single(CrossEntropyGradOp{smoothing, scale}, descs, {whole(shape)}, DType::f32),
                             inputs, {.number = i});
        // With few values there are ties.
        fill(logits, [&](int64_t) { return static_cast<double>(draw.between(0, 3)); });
        expect_agreement(*implementation, Problem::single(CorrectOp{}, {descs[0], descs[1]}, {whole({1})}, DType::f32), {logits, inputs[1]},
                         {.tolerance = 0, .number = i});
    }
}

TEST(OwnLoss, CrossEntropyOfTheSureKeepsItsDigits) {
    const Shape shape{20, 7};
    const Problem loss = Problem::single(CrossEntropyOp{}, {whole(shape), whole({20}, DType::i32)}, {whole({1})}, DType::f32);
    const Problem grad = Problem::single(CrossEntropyGradOp{}, {whole(shape), whole({20}, DType::i32)}, {whole(shape)}, DType::f32);
    Draw draw("sure", 0);
    Tensor logits = draw.normal(shape);
    const Tensor target = draw.labels({20}, 7);
    fill(logits, [&](int64_t i) { return element(logits, i) + (i % 7 == static_cast<int64_t>(element(target, i / 7)) ? 20 : 0); });
    const auto tables = vec::vector_kernel_tables();
    for (int k = 0; k < tables.count; ++k) {
        const auto implementation = make_loss_implementation(*tables.tables[k]);
        expect_agreement(*implementation, loss, {logits, target});
        expect_agreement(*implementation, grad, {logits, target});
    }
}

TEST(OwnLoss, AWrongTargetGivesNaN) {
    const Shape shape{20, 7};
    const auto implementation = make_loss_implementation(some_kernels(0));
    Tensor target({20}, DType::i32);
    for (const int32_t wrong : {-1, 7}) {
        target.as<int32_t>()[18] = wrong;
        const std::vector<Tensor> both{Tensor(shape, DType::f64), target};
        const Problem loss = Problem::single(CrossEntropyOp{}, {whole(shape), whole({20}, DType::i32)}, {whole({1})}, DType::f32);
        const auto loss_candidate = implementation->candidates(loss, {}).at(0);
        EXPECT_TRUE(std::isnan(element(CandidateRun(*implementation, loss, loss_candidate, {}, both)({})[0], 0)));
        const Problem grad = Problem::single(CrossEntropyGradOp{}, {whole(shape), whole({20}, DType::i32)}, {whole(shape)}, DType::f32);
        const auto grad_candidate = implementation->candidates(grad, {}).at(0);
        const Tensor found = CandidateRun(*implementation, grad, grad_candidate, {}, both)({})[0];
        for (int64_t i = 0; i < found.numel(); ++i) EXPECT_EQ(std::isnan(element(found, i)), i / 7 == 18) << i;
    }
}

TEST(OwnLoss, Softmax) {
    for (int i = 0; i < test_count(40, 500); ++i) {
        Draw draw("softmax", i);
        const auto implementation = make_loss_implementation(some_kernels(i));
        const Shape shape = draw_activation(draw, i);
        Tensor x = draw.normal(shape);
        fill(x, [&](int64_t k) { return 4 * element(x, k) + 100; });
        const Problem forward = Problem::single(SoftmaxOp{1}, {whole(shape)}, {whole(shape)}, DType::f32);
        expect_agreement(*implementation, forward, {x}, {.number = i});
        if (shape[1] > 1)
            expect_agreement(*implementation, Problem::single(SoftmaxGradOp{1}, {whole(shape), whole(shape)}, {whole(shape)}, DType::f32),
                             {reference_outputs(forward, {x}, {})[0], draw.normal(shape)}, {.number = i});
    }
}

TEST(OwnLoss, Errors) {
    for (int i = 0; i < test_count(40, 500); ++i) {
        Draw draw("errors", i);
        const auto implementation = make_loss_implementation(some_kernels(i));
        const Shape shape = draw_activation(draw, i);
        const Tensor x = draw.normal(shape);
        Tensor target = draw.normal(shape);
        // Some are met.
        fill(target, [&](int64_t k) { return element(k % 5 == 0 ? x : target, k); });
        const auto kind = draw.coin() ? ErrorKind::Squared : ErrorKind::Absolute;
        const double scale = draw.real(0.01, 2);
        const std::vector<TensorDesc> descs{whole(shape), whole(shape)};
        expect_agreement(*implementation, Problem::single(ErrorLossOp{kind, scale}, descs, {whole({1})}, DType::f32), {x, target},
                         {.number = i});
        expect_agreement(*implementation, Problem::single(ErrorLossGradOp{kind, scale}, descs, {whole(shape)}, DType::f32), {x, target},
                         {.number = i});
    }
}

}  // namespace
}  // namespace convoy::cpu
