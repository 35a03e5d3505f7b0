// The numbers of activations, PReLU and softmax are PyTorch's, in double.
#include "kernels/reference/elementwise.h"

#include <cmath>

#include "kernels/reference/kernel_testing.h"

namespace convoy::ref {
namespace {

using namespace testing;

struct UnaryCase {
    Unary kind;
    double alpha;
    std::vector<double> y, dx;
};

std::vector<UnaryCase> unary_cases() {
    return {
        {Unary::Relu, 0, {0, 0, 0, 0, 0.5, 2}, {0, 0, 0, 0, 0.25, -1}},
        {Unary::Relu6, 0, {0, 0, 0, 0, 0.5, 2}, {0, 0, 0, 0, 0.25, -1}},
        {Unary::LeakyRelu, 0.2, {-0.6, -0.2, -0.05, 0, 0.5, 2}, {0.2, -0.4, 0.1, 0.2, 0.25, -1}},
        {Unary::Sigmoid,
         0,
         {0.04742587317757, 0.26894142137, 0.4378234991142, 0.5, 0.6224593312019, 0.8807970779779},
         {0.04517665973091, -0.393223866483, 0.1230670413688, 0.25, 0.0587509280504, -0.1049935854035}},
        {Unary::Tanh,
         0,
         {-0.9950547536867, -0.7615941559558, -0.2449186624037, 0, 0.46211715726, 0.9640275800758},
         {0.00986603716544, -0.8399486832281, 0.4700074244032, 1, 0.1966119332415, -0.07065082485316}},
        {Unary::Gelu,
         0,
         {-0.00404969409489, -0.1586552539315, -0.1003234185793, 0, 0.345731230637, 1.954499736104},
         {-0.01194564720418, 0.1666309411754, 0.1523133225582, 0.5, 0.216873781164, -1.085231801078}},
        {Unary::GeluTanh,
         0,
         {-0.003637392081773, -0.1588080093917, -0.1003246492983, 0, 0.3457140098251, 1.954597694088},
         {-0.01158416663097, 0.1659281676916, 0.1523229524245, 0.5, 0.2168424758837, -1.086099256624}},
        {Unary::Silu,
         0,
         {-0.1422776195327, -0.26894142137, -0.1094558747786, 0, 0.3112296656009, 1.761594155956},
         {-0.08810410601517, -0.144658976257, 0.1881449892149, 0.5, 0.1849902968257, -1.090784248785}},
    };
}

TEST(Unary, KnownAnswersAlsoInPlace) {
    const Tensor x = doubles({6}, {-3, -1, -0.25, 0, 0.5, 2}), dy = doubles({6}, {1, -2, 0.5, 1, 0.25, -1});
    for (const auto& c : unary_cases()) {
        SCOPED_TRACE(name_of(c.kind));
        const Tensor y = run<double>(UnaryOp{c.kind, c.alpha}, {x}, {{6}})[0];
        expect_near(y, c.y);
        const UnaryGradOp grad{c.kind, c.alpha};
        Tensor saved = grad_reads_output(c.kind) ? y : x, gradient = dy, copy = x;
        const Tensor dx = run<double>(grad, {saved, dy}, {{6}})[0];
        expect_near(dx, c.dx);

        run_into<double>(UnaryOp{c.kind, c.alpha}, {&copy}, {&copy});
        EXPECT_EQ(copy, y);
        run_into<double>(grad, {&saved, &gradient}, {&gradient});
        EXPECT_EQ(gradient, dx);
        gradient = dy;
        run_into<double>(grad, {&saved, &gradient}, {&saved});
        EXPECT_EQ(saved, dx);
    }
}

TEST(Unary, Relu6StopsAtSix) {
    const Tensor y = run<double>(UnaryOp{Unary::Relu6, 0}, {doubles({4}, {-1, 5.5, 6, 7})}, {{4}})[0];
    expect_near(y, {0, 5.5, 6, 6});
    expect_near(run<double>(UnaryGradOp{Unary::Relu6, 0}, {y, doubles({4}, {1, 2, 3, 4})}, {{4}})[0], {0, 2, 0, 0});
}

TEST(Unary, NaNStaysNaN) {
    const Tensor x = doubles({1}, {std::nan("")}), one = doubles({1}, {1});
    for (const auto& c : unary_cases()) {
        SCOPED_TRACE(name_of(c.kind));
        EXPECT_TRUE(std::isnan(element(run<double>(UnaryOp{c.kind, c.alpha}, {x}, {{1}})[0], 0)));
        EXPECT_TRUE(std::isnan(element(run<double>(UnaryGradOp{c.kind, c.alpha}, {one, x}, {{1}})[0], 0)));
    }
}

TEST(Unary, LargeArgumentsSaturate) {
    const Tensor x = doubles({2}, {-1000, 1000});
    expect_near(run<double>(UnaryOp{Unary::Sigmoid, 0}, {x}, {{2}})[0], {0, 1});
    expect_near(run<double>(UnaryOp{Unary::Silu, 0}, {x}, {{2}})[0], {0, 1000});
    expect_near(run<double>(UnaryGradOp{Unary::Silu, 0}, {x, doubles({2}, {1, 1})}, {{2}})[0], {0, 1});
    expect_near(run<double>(UnaryGradOp{Unary::Gelu, 0}, {x, doubles({2}, {1, 1})}, {{2}})[0], {0, 1});
    expect_near(run<double>(UnaryGradOp{Unary::GeluTanh, 0}, {x, doubles({2}, {1, 1})}, {{2}})[0], {0, 1});
}

TEST(PRelu, SlopePerChannel) {
    const Shape shape{2, 3, 2};
    const Tensor x = sequence(shape), dy = gradient_sequence(shape), slope = doubles({3}, {0.25, -0.5, 0.1});
    expect_near(run<double>(PReluOp{}, {x, slope}, {shape})[0], {-0.3125, 0.5, 0.25, 1.25, 0.25, -0.075, 1, 0, 0.5, 0.75, -0.025, -0.125});
    expect_near(run<double>(PReluGradInputOp{}, {x, slope, dy}, {shape})[0],
                {-0.1875, -0.125, -0.25, -0.5, 0.125, 0.075, -0.25, 0.09375, 0.3125, 0, 0.0625, -0.0375});
    expect_near(run<double>(PReluGradSlopeOp{3}, {x, dy}, {{3}})[0], {0.9375, 0.375, -0.25});
}

TEST(PRelu, OneSlopeIsTheSumOverChannels) {
    const Shape shape{2, 3, 2};
    const Tensor x = sequence(shape), dy = gradient_sequence(shape);
    expect_near(run<double>(PReluGradSlopeOp{1}, {x, dy}, {{1}})[0], {0.9375 + 0.375 - 0.25});
    EXPECT_EQ(run<double>(PReluOp{}, {x, doubles({1}, {0.3})}, {shape}),
              run<double>(PReluOp{}, {x, doubles({3}, {0.3, 0.3, 0.3})}, {shape}));
    EXPECT_EQ(run<double>(PReluGradInputOp{}, {x, doubles({1}, {0.3}), dy}, {shape}),
              run<double>(PReluGradInputOp{}, {x, doubles({3}, {0.3, 0.3, 0.3}), dy}, {shape}));
}

TEST(Softmax, AlongEitherAxis) {
    const Shape shape{2, 3, 2};
    const Tensor x = sequence(shape), dy = gradient_sequence(shape);
    const auto channels = run<double>(SoftmaxOp{1}, {x}, {shape})[0], last = run<double>(SoftmaxOp{2}, {x}, {shape})[0];
    expect_near(channels, {0.1316016471469, 0.2938147747115, 0.2786006891963, 0.6220058829453, 0.5897976636568, 0.08417934234324,
                           0.7033139760218, 0.2938147747115, 0.09518319614918, 0.6220058829453, 0.2015028278291, 0.08417934234324});
    expect_near(run<double>(SoftmaxGradOp{1}, {channels, dy}, {shape})[0],
                {-0.1137464380112, 0.04689145169485, 0.107449650336, -0.1339830020875, 0.006296787675131, 0.08709155039264,
                 -0.09890090859227, 0.087082795267, -0.04907848103263, -0.04889792707756, 0.1479793896249, -0.03818486818944});
    expect_near(last, {0.1480471980317, 0.8519528019683, 0.1480471980317, 0.8519528019683, 0.73105857863, 0.26894142137, 0.73105857863,
                       0.26894142137, 0.1480471980317, 0.8519528019683, 0.73105857863, 0.26894142137});
    expect_near(run<double>(SoftmaxGradOp{2}, {last, dy}, {shape})[0],
                {-0.07883076574166, 0.07883076574166, 0.1261292251867, -0.1261292251867, -0.1228824582759, 0.1228824582759,
                 -0.1228824582759, 0.1228824582759, -0.07883076574166, 0.07883076574166, 0.1966119332415, -0.1966119332415});
}

TEST(Softmax, LargeLogitsDoNotOverflow) {
    expect_near(run<float>(SoftmaxOp{1}, {doubles({1, 3}, {1e4, 1e4, -1e4}).to(DType::f32)}, {{1, 3}})[0], {0.5, 0.5, 0});
}

TEST(Add, ThreeInputsAndInPlaceOfAny) {
    const Shape shape{1000};  // more than a piece
    const Tensor a = normal(shape, "a"), b = normal(shape, "b"), c = normal(shape, "c");
    const Tensor sum = run<double>(AddOp{}, {a, b, c}, {shape})[0];
    for (int64_t i = 0; i < 1000; ++i) ASSERT_EQ(element(sum, i), element(a, i) + element(b, i) + element(c, i));
    for (const size_t place : {0u, 1u, 2u}) {
        std::vector<Tensor> in{a, b, c};
        run_into<double>(AddOp{}, {&in[0], &in[1], &in[2]}, {&in[place]});
        EXPECT_EQ(in[place], sum);
    }
}

TEST(MulAndScale, AlsoInPlace) {
    Tensor a = doubles({3}, {1, -2, 3}), b = doubles({3}, {4, 5, -6});
    EXPECT_EQ(run<double>(MulOp{}, {a, b}, {{3}})[0], doubles({3}, {4, -10, -18}));
    EXPECT_EQ(run<double>(ScaleOp{-0.5}, {a}, {{3}})[0], doubles({3}, {-0.5, 1, -1.5}));
    run_into<double>(MulOp{}, {&a, &b}, {&b});
    EXPECT_EQ(b, doubles({3}, {4, -10, -18}));
    run_into<double>(ScaleOp{-0.5}, {&a}, {&a});
    EXPECT_EQ(a, doubles({3}, {-0.5, 1, -1.5}));
}

TEST(Elementwise, TypesAndThreadsAgree) {
    for (const Shape& shape : {Shape{3, 4, 5, 7}, Shape{2, 5}, Shape{2, 6, 50, 40}}) {
        SCOPED_TRACE(to_string(shape));
        const Tensor x = normal(shape, "x"), dy = normal(shape, "dy"), slope = normal({shape[1]}, "slope"), one = normal({1}, "one");
        for (const auto& c : unary_cases()) {
            expect_types_and_threads_agree(UnaryOp{c.kind, c.alpha}, {x}, {shape});
            expect_types_and_threads_agree(UnaryGradOp{c.kind, c.alpha}, {x, dy}, {shape});
        }
        expect_types_and_threads_agree(PReluOp{}, {x, slope}, {shape});
        expect_types_and_threads_agree(PReluGradInputOp{}, {x, slope, dy}, {shape});
        expect_types_and_threads_agree(PReluGradSlopeOp{shape[1]}, {x, dy}, {{shape[1]}});
        expect_types_and_threads_agree(PReluGradSlopeOp{1}, {x, dy}, {{1}});
        for (int axis = 0; axis < shape.size(); ++axis) {
            const Tensor y = run<double>(SoftmaxOp{axis}, {x}, {shape})[0];
            expect_types_and_threads_agree(SoftmaxOp{axis}, {x}, {shape});
            expect_types_and_threads_agree(SoftmaxGradOp{axis}, {y, dy}, {shape});
        }
        expect_types_and_threads_agree(AddOp{}, {x, dy, x}, {shape});
        expect_types_and_threads_agree(MulOp{}, {x, dy}, {shape});
        expect_types_and_threads_agree(ScaleOp{0.3}, {x}, {shape});
        expect_types_and_threads_agree(DropoutOp{0.3, 5, 0}, {x}, {shape});
    }
}

}  // namespace
}  // namespace convoy::ref
