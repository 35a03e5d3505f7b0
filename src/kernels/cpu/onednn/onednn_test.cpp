// oneDNN's layouts, and its matrix products against the reference on random problems. Its convolutions: conv/convolution_test.cpp.
#include "kernels/cpu/onednn/common.h"
#include "kernels/cpu/onednn/implementations.h"
#include "kernels/cpu/own_testing.h"

namespace convoy::cpu {
namespace {

using namespace testing;

// A library format comes back as the layout it was made of, single blocks and dims of size 1 included.
TEST(OneDnn, LayoutsAreRecognised) {
    for (const int64_t f : {1, 16, 32})
        for (const int64_t c : {1, 16, 32})
            for (const int64_t k : {1, 3})
                for (const Layout& layout : {Layout{.order = {0, 1, 2, 3}, .inner = {{1, 16}, {0, 16}}}, Layout::blocked(4, 16),
                                             Layout::channels_last(4), Layout::plain()}) {
                    const Shape shape{f, c, k, k};
                    const auto desc = describe(shape, layout);
                    const auto found = layout_of(desc, shape);
                    ASSERT_TRUE(found) << to_string(shape) << " " << layout.text();
                    EXPECT_EQ(describe(shape, *found), desc) << to_string(shape) << " " << layout.text() << " " << found->text();
                }
}

TEST(OneDnnLinear, RefusesWhatItDoesNotKnow) {
    ProblemBuilder other;
    other.step(UnaryOp{}, {other.input({4})}, {other.output({4})});
    EXPECT_TRUE(onednn_linear().candidates(other.problem, {}).empty());
}

TEST(OneDnnLinear, AllDirections) {
    for (int i = 0; i < test_count(60, 500); ++i) {
        Draw d("linear", i);
        const int64_t n = d.between(1, 20), in = d.between(1, 60), out = d.between(1, 60);
        const Shape x{n, in}, w{out, in}, y{n, out};
        ProblemBuilder forward;
        const int fx = forward.input(x), fw = forward.input(w), fb = forward.input({out}), fy = forward.output(y), a = forward.inside(y),
                  b = forward.inside(y);
        forward.step(LinearOp{}, {fx, fw}, {a}).step(BiasOp{}, {a, fb}, {b}).step(UnaryOp{Unary::Relu}, {b}, {fy});
        expect_agreement(onednn_linear(), forward.problem, {d.normal(x), d.normal(w), d.normal({out})});
        ProblemBuilder input;
        const int idy = input.input(y), iw = input.input(w), idx = input.output(x);
        input.step(LinearGradInputOp{}, {idy, iw}, {idx});
        expect_agreement(onednn_linear(), input.problem, {d.normal(y), d.normal(w)});
        ProblemBuilder weight;
        const int wx = weight.input(x), wdy = weight.input(y), dw = weight.output(w), db = weight.output({out});
        weight.step(LinearGradWeightOp{}, {wx, wdy}, {dw}).step(BiasGradOp{}, {wdy}, {db});
        expect_agreement(onednn_linear(), weight.problem, {d.normal(x), d.normal(y)});
    }
}

}  // namespace
}  // namespace convoy::cpu
