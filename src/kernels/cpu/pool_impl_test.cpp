#include "kernels/cpu/own_testing.h"

namespace convoy::cpu {
namespace {

using namespace testing;

TensorDesc whole(const Shape& shape, DType type = DType::f32) { return TensorDesc::whole(shape, type); }

// Small integers, so that there are ties.
Tensor with_ties(Draw& draw, const Shape& shape) {
    Tensor x(shape, DType::f64);
    fill(x, [&](int64_t) { return static_cast<double>(draw.between(-4, 4)); });
    return x;
}

struct Pooling {
    Window window;
    Shape x, y;
    DType where;
};

Pooling draw_pooling(Draw& draw, int number, bool empty_windows) {
    while (true) {
        const auto [window, in, out] =
            ref::testing::draw_window(draw, {.length = number % 4 == 3 ? 30 : 9, .kernel = number % 5 == 4 ? 17 : 4});
        const int64_t channels = draw.between(1, draw.coin() ? 20 : 90);
        const int64_t n = number % 4 == 3 ? std::min<int64_t>(1 + 20000 / (channels * numel(in)), 60) : draw.between(1, 3);
        const Pooling p{window, join({n, channels}, in), join({n, channels}, out), numel(window.kernel) <= 256 ? DType::u8 : DType::i32};
        if (empty_windows) return p;
        // Padding all around a window leaves it nothing to see.
        bool sees = true;
        for (int d = 0; d < window.rank(); ++d)
            for (int64_t o = 0; o < out[d]; ++o) {
                bool some = false;
                for (int64_t k = 0; k < window.kernel[d]; ++k) {
                    const int64_t i = o * window.stride[d] - window.pad_lo[d] + k * window.dilation[d];
                    some = some || (i >= 0 && i < in[d]);
                }
                sees = sees && some;
            }
        if (sees) return p;
    }
}

TEST(OwnPool, Maxima) {
    for (int i = 0; i < test_count(60, 500); ++i) {
        Draw draw("max", i);
        const auto implementation = make_pool_implementation(some_kernels(i));
        const Pooling p = draw_pooling(draw, i, i % 2 == 0);
        const Tensor x = with_ties(draw, p.x), dy = draw.normal(p.y);
        const Problem forward = Problem::single(MaxPoolOp{p.window}, {whole(p.x)}, {whole(p.y), whole(p.y, p.where)}, DType::f32);
        expect_agreement(*implementation, forward, {x}, {.tolerance = 0, .number = i});
        const Tensor where = reference_outputs(forward, {x}, {})[1];
        const MaxPoolGradOp grad{p.window, p.x.slice(2)};
        expect_agreement(*implementation, Problem::single(grad, {whole(p.y), whole(p.y, p.where)}, {whole(p.x)}, DType::f32), {dy, where},
                         {.number = i});
        ProblemBuilder b;
        const int tdy = b.input(p.y), tw = b.input(p.y, p.where), ty = b.input(p.y), dx = b.output(p.x), masked = b.inside(p.y);
        b.step(UnaryGradOp{}, {ty, tdy}, {masked}).step(grad, {masked, tw}, {dx});
        expect_agreement(*implementation, b.problem, {dy, where, with_ties(draw, p.y)}, {.number = i});
    }
}

TEST(OwnPool, ANaNIsTheLargest) {
    const auto tables = vec::vector_kernel_tables();
    for (int k = 0; k < tables.count; ++k) {
        const auto implementation = make_pool_implementation(*tables.tables[k]);
        const Shape shape{1, 17, 4, 4}, pooled{1, 17, 2, 2};
        Window window = Window::of({2, 2});
        window.stride = {2, 2};
        const Problem problem = Problem::single(MaxPoolOp{window}, {whole(shape)}, {whole(pooled), whole(pooled, DType::u8)}, DType::f32);
        Tensor x(shape, DType::f64);
        fill(x, [](int64_t i) { return i % 16 == 1 || i % 16 == 4 ? std::nan("") : 1; });
        for (const auto& candidate : implementation->candidates(problem, {})) {
            const auto found = CandidateRun(*implementation, problem, candidate, {}, {x})({});
            for (int64_t o = 0; o < numel(pooled); ++o) {
                EXPECT_EQ(std::isnan(element(found[0], o)), o % 4 == 0) << o;
                EXPECT_EQ(element(found[1], o), o % 4 == 0 ? 1 : 0) << o;
            }
        }
    }
}

TEST(OwnPool, Averages) {
    for (int i = 0; i < test_count(60, 500); ++i) {
        Draw draw("average", i);
        const auto implementation = make_pool_implementation(some_kernels(i));
        const Pooling p = draw_pooling(draw, i, true);
        const bool count_padding = draw.coin();
        const Tensor x = draw.normal(p.x), dy = draw.normal(p.y);
        const AveragePoolOp op{p.window, count_padding, {}};
        expect_agreement(*implementation, Problem::single(op, {whole(p.x)}, {whole(p.y)}, DType::f32), {x}, {.number = i});
        const AveragePoolGradOp grad{p.window, count_padding, {}, p.x.slice(2)};
        expect_agreement(*implementation, Problem::single(grad, {whole(p.y)}, {whole(p.x)}, DType::f32), {dy}, {.number = i});
    }
}

TEST(OwnPool, AdaptiveAndGlobalAverages) {
    for (int i = 0; i < test_count(60, 500); ++i) {
        Draw draw("adaptive", i);
        const auto implementation = make_pool_implementation(some_kernels(i));
        const Shape shape = draw_activation(draw, i, 3);
        const Dims space = shape.slice(2);
        Dims output = Dims::filled(space.size(), 1);
        if (i % 2 == 0)
            for (auto& length : output) length = draw.between(1, 8);
        const Shape pooled = join(shape.slice(0, 2), output);
        const Tensor x = draw.normal(shape), dy = draw.normal(pooled);
        expect_agreement(*implementation, Problem::single(AdaptivePoolOp{output}, {whole(shape)}, {whole(pooled)}, DType::f32), {x},
                         {.number = i});
        expect_agreement(*implementation, Problem::single(AdaptivePoolGradOp{space}, {whole(pooled)}, {whole(shape)}, DType::f32), {dy},
                         {.number = i});
    }
}

TEST(OwnPool, LeavesPartsOfAdaptivePoolingToTheReference) {
    const auto implementation = make_pool_implementation(some_kernels(0));
    TensorDesc part = whole({1, 2, 3, 4});
    part.global[2] = 6;
    EXPECT_TRUE(implementation->candidates(Problem::single(AdaptivePoolOp{{1, 1}}, {part}, {whole({1, 2, 1, 1})}, DType::f32), {}).empty());
}

}  // namespace
}  // namespace convoy::cpu
