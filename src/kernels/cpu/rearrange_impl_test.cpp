#include "kernels/cpu/own_testing.h"

namespace convoy::cpu {
namespace {

using namespace testing;

TensorDesc whole(const Shape& shape) { return TensorDesc::whole(shape, DType::f32); }

// Numbers of channels of which half are whole blocks.
int64_t draw_channels(Draw& draw) { return draw.coin() ? 8 * draw.between(1, 6) : draw.between(1, 40); }

TEST(OwnRearrange, Concat) {
    for (int i = 0; i < test_count(40, 500); ++i) {
        Draw draw("concat", i);
        const Shape like = draw_activation(draw, i);
        std::vector<TensorDesc> in;
        std::vector<Tensor> inputs;
        int64_t channels = 0;
        for (int64_t k = draw.between(2, 5); k > 0; --k) {
            Shape shape = like;
            shape[1] = draw_channels(draw);
            channels += shape[1];
            in.push_back(whole(shape));
            inputs.push_back(draw.normal(shape));
        }
        Shape joined = like;
        joined[1] = channels;
        expect_agreement(*make_rearrange_implementation(some_kernels(i)), Problem::single(ConcatOp{1}, in, {whole(joined)}, DType::f32),
                         inputs, {.tolerance = 0, .number = i});
    }
}

TEST(OwnRearrange, Slice) {
    for (int i = 0; i < test_count(40, 500); ++i) {
        Draw draw("slice", i);
        Shape shape = draw_activation(draw, i), part = shape;
        const int64_t before = draw.coin() ? 16 * draw.between(0, 2) : draw.between(0, 20), after = draw.coin() ? 0 : draw_channels(draw);
        part[1] = draw_channels(draw);
        shape[1] = before + part[1] + after;
        Dims start = Dims::filled(shape.size(), 0);
        start[1] = before;
        expect_agreement(*make_rearrange_implementation(some_kernels(i)),
                         Problem::single(SliceOp{start, part}, {whole(shape)}, {whole(part)}, DType::f32), {draw.normal(shape)},
                         {.tolerance = 0, .number = i});
    }
}

TEST(OwnRearrange, BlocksAreCutOnlyBetweenThem) {
    const auto implementation = make_rearrange_implementation(some_kernels(0));
    const CpuContext context{1, 16};
    const auto count = [&](const Problem& problem) { return implementation->candidates(problem, context).size(); };
    const auto shape = [](int64_t channels) { return whole({2, channels, 3, 3}); };
    EXPECT_EQ(count(Problem::single(ConcatOp{1}, {shape(32), shape(5)}, {shape(37)}, DType::f32)), 3u);
    EXPECT_EQ(count(Problem::single(ConcatOp{1}, {shape(5), shape(32)}, {shape(37)}, DType::f32)), 2u);
    const auto slice = [&](int64_t start, int64_t size) {
        return count(Problem::single(SliceOp{{0, start, 0, 0}, {2, size, 3, 3}}, {shape(40)}, {shape(size)}, DType::f32));
    };
    EXPECT_EQ(slice(16, 16), 3u);
    EXPECT_EQ(slice(16, 24), 3u);
    EXPECT_EQ(slice(16, 8), 2u);
    EXPECT_EQ(slice(8, 16), 2u);
}

}  // namespace
}  // namespace convoy::cpu
