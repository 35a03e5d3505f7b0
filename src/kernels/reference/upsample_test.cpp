#include "kernels/reference/upsample.h"

#include "kernels/reference/test_support.h"

namespace convoy::ref {
namespace {

using namespace testing;

// PyTorch's documented examples for a 2x2 input of 1, 2, 3, 4.
TEST(Upsample, KnownAnswers) {
    const Tensor x = doubles({1, 1, 2, 2}, {1, 2, 3, 4});
    const Shape y{1, 1, 4, 4};
    expect_near(run_op1(UpsampleOp{Resample::Nearest, {4, 4}}, {x}, y), {1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4});
    expect_near(run_op1(UpsampleOp{Resample::Linear, {4, 4}}, {x}, y),
                {1, 1.25, 1.75, 2, 1.5, 1.75, 2.25, 2.5, 2.5, 2.75, 3.25, 3.5, 3, 3.25, 3.75, 4});
    const double t = 1.0 / 3;
    expect_near(run_op1(UpsampleOp{Resample::Linear, {4, 4}, true}, {x}, y),
                {1, 1 + t, 2 - t, 2, 2 - t, 2, 2 + t, 3 - t, 2 + t, 3 - t, 3, 3 + t, 3, 3 + t, 4 - t, 4});
}

TEST(Upsample, OtherFactorsAndGradients) {
    const Tensor x = doubles({1, 1, 3}, {1, 2, 4});
    expect_near(run_op1(UpsampleOp{Resample::Nearest, {5}}, {x}, {1, 1, 5}), {1, 1, 2, 2, 4});
    expect_near(run_op1(UpsampleOp{Resample::Nearest, {2}}, {x}, {1, 1, 2}), {1, 2});
    expect_near(run_op1(UpsampleOp{Resample::Linear, {1}, true}, {x}, {1, 1, 1}), {1});
    expect_near(run_op1(UpsampleOp{Resample::Linear, {1}, false}, {x}, {1, 1, 1}), {2});
    expect_near(run_op1(UpsampleGradOp{Resample::Nearest, {3}}, {doubles({1, 1, 5}, {1, 2, 3, 4, 5})}, {1, 1, 3}), {3, 7, 5});
    expect_near(run_op1(UpsampleGradOp{Resample::Linear, {2}, true}, {doubles({1, 1, 3}, {1, 2, 3})}, {1, 1, 2}), {2, 4});
}

TEST(AdaptivePool, KnownAnswers) {
    const Tensor x = doubles({1, 1, 5}, {1, 2, 3, 4, 5});
    expect_near(run_op1(AdaptivePoolOp{{3}}, {x}, {1, 1, 3}), {1.5, 3, 4.5});
    expect_near(run_op1(AdaptivePoolOp{{1}}, {x}, {1, 1, 1}), {3});
    expect_near(run_op1(AdaptivePoolOp{{7}}, {x}, {1, 1, 7}), {1, 1.5, 2.5, 3, 3.5, 4.5, 5});
    expect_near(run_op1(AdaptivePoolGradOp{{5}}, {doubles({1, 1, 3}, {6, 6, 6})}, {1, 1, 5}), {3, 5, 2, 5, 3});
}

struct Case {
    std::string name;
    Op forward, backward;
};

std::vector<Case> cases(const Dims& in, const Dims& out) {
    return {{"nearest", UpsampleOp{Resample::Nearest, out}, UpsampleGradOp{Resample::Nearest, in}},
            {"linear", UpsampleOp{Resample::Linear, out}, UpsampleGradOp{Resample::Linear, in}},
            {"aligned", UpsampleOp{Resample::Linear, out, true}, UpsampleGradOp{Resample::Linear, in, true}},
            {"adaptive", AdaptivePoolOp{out}, AdaptivePoolGradOp{in}}};
}

// The part [begin, end) of a tensor along a dim.
Tensor part(const Tensor& whole, int dim, int64_t begin, int64_t end) {
    Shape shape = whole.shape();
    shape[dim] = end - begin;
    Dims start = Dims::filled(shape.size(), 0);
    start[dim] = begin;
    return run_op1(SliceOp{start, shape}, {whole}, shape);
}

TensorDesc part_desc(const Shape& whole, int dim, int64_t begin, int64_t end) {
    TensorDesc desc = TensorDesc::whole(whole, DType::f64);
    desc.shape[dim] = end - begin;
    desc.origin[dim] = begin;
    return desc;
}

Tensor run_part(const Op& op, Tensor input, const TensorDesc& in, const TensorDesc& out) {
    Tensor result(out.shape, out.dtype);
    const std::vector<Operand> inputs{{input.data(), in, Layout::plain()}}, outputs{{result.data(), out, Layout::plain()}};
    run_reference(op, inputs, outputs, nullptr, 3, {});
    return result;
}

// A whole result is the sum of what the parts of the input give, and each part of the result comes out by itself; forwards and backwards.
void check_parts(const Op& op, const Tensor& x, const Shape& y, Draw& draw) {
    const Tensor expected = run_op1(op, {x}, y);
    const int dim = static_cast<int>(draw.between(2, y.size() - 1));
    const int64_t cut = draw.between(0, x.shape()[dim]), length = x.shape()[dim];
    const TensorDesc whole = TensorDesc::whole(y, DType::f64);
    const Tensor low = run_part(op, cut == 0 ? Tensor(part_desc(x.shape(), dim, 0, 0).shape, DType::f64) : part(x, dim, 0, cut),
                                part_desc(x.shape(), dim, 0, cut), whole);
    const Tensor high = run_part(op, cut == length ? Tensor(part_desc(x.shape(), dim, 0, 0).shape, DType::f64) : part(x, dim, cut, length),
                                 part_desc(x.shape(), dim, cut, length), whole);
    EXPECT_LT(relative_error(run_op1(AddOp{}, {low, high}, y), expected, 1e-30), 1e-13) << text_of(op);
    const int64_t begin = draw.between(0, y[dim] - 1), end = draw.between(begin + 1, y[dim]);
    EXPECT_EQ(run_part(op, x, TensorDesc::whole(x.shape(), DType::f64), part_desc(y, dim, begin, end)), part(expected, dim, begin, end))
        << text_of(op);
}

TEST(Resampling, PartsMakeTheWhole) {
    for (int i = 0; i < test_count(60, 600); ++i) {
        Draw draw("parts", i);
        const int rank = static_cast<int>(draw.between(1, 3));
        const Dims in = draw.dims(rank, 1, 7), out = draw.dims(rank, 1, 9);
        const Shape x = join({2, 2}, in), y = join({2, 2}, out);
        for (const auto& c : cases(in, out)) {
            check_parts(c.forward, draw.normal(x), y, draw);
            check_parts(c.backward, draw.normal(y), x, draw);
        }
    }
}

TEST(Resampling, TypesAndThreadsAgree) {
    for (int i = 0; i < test_count(40, 400); ++i) {
        Draw draw("resampling", i);
        const int rank = static_cast<int>(draw.between(1, 3));
        const Dims in = draw.dims(rank, 1, 7), out = draw.dims(rank, 1, 9);
        const Shape x = join({2, 3}, in), y = join({2, 3}, out);
        for (const auto& c : cases(in, out)) {
            expect_agreement(c.forward, {draw.normal(x)}, y);
            expect_agreement(c.backward, {draw.normal(y)}, x);
        }
    }
}

// Every output is an average: a constant stays what it is.
TEST(Resampling, KeepsConstants) {
    for (int i = 0; i < test_count(40, 400); ++i) {
        Draw draw("constants", i);
        const int rank = static_cast<int>(draw.between(1, 3));
        const Dims in = draw.dims(rank, 1, 7), out = draw.dims(rank, 1, 9);
        const Shape x = join({1, 1}, in), y = join({1, 1}, out);
        for (const auto& c : cases(in, out))
            expect_near(run_op1(c.forward, {Tensor::of<double>(x, std::vector<double>(static_cast<size_t>(numel(x)), 2.5))}, y),
                        std::vector<double>(static_cast<size_t>(numel(y)), 2.5));
    }
}

}  // namespace
}  // namespace convoy::ref
