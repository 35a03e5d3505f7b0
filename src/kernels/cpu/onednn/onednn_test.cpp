// oneDNN's convolutions and matrix products against the reference, on random problems, by every candidate that is offered.
#include "kernels/cpu/onednn/implementations.h"
#include "kernels/cpu/own_testing.h"

namespace convoy::cpu {
namespace {

using namespace testing;

struct ConvCase {
    Window window;
    int64_t groups;
    Shape x, w, y;
};

// Channels around the block of 16, groups up to depthwise, any stride, dilation and padding; 3x3 often enough to meet Winograd's method.
ConvCase draw_conv(Draw& d) {
    while (true) {
        const int rank = static_cast<int>(d.between(1, 3));
        const int64_t most = rank == 3 ? 7 : 12;
        Window window{d.dims(rank, 1, 4), d.dims(rank, 1, 3), d.dims(rank, 1, 2), d.dims(rank, 0, 2), d.dims(rank, 0, 2)};
        if (rank == 2 && d.coin()) window = {{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}};
        const int64_t groups = d.between(0, 3) == 0 ? d.between(2, 4) : 1;
        const bool depthwise = groups > 1 && d.coin();
        const int64_t c = groups * (depthwise ? 1 : d.between(1, 20)), f = groups * (depthwise ? 1 : d.between(1, 36)), n = d.between(1, 3);
        const Dims in = d.dims(rank, 1, most), out = window.output(in);
        if (numel(out) == 0) continue;
        return {window, groups, join({n, c}, in), join({f, c / groups}, window.kernel), join({n, f}, out)};
    }
}

template <class Build>
void check_convolutions(const char* name, Build build) {
    int offered = 0;
    for (int i = 0; i < test_count(60, 500); ++i) {
        Draw d(name, i);
        const ConvCase c = draw_conv(d);
        const auto [problem, inputs] = build(d, c);
        if (onednn_conv().candidates(problem, {.threads = 1 + i % 2}).empty()) continue;
        ++offered;
        SCOPED_TRACE(text_of(problem) + " on " + to_string(c.x));
        expect_agreement(onednn_conv(), problem, inputs);
    }
    EXPECT_GT(offered, test_count(60, 500) * 8 / 10);
}

using Built = std::pair<Problem, std::vector<Tensor>>;

TEST(OneDnnConv, Forward) {
    check_convolutions("forward", [](Draw& d, const ConvCase& c) {
        ProblemBuilder b;
        const int kind = static_cast<int>(d.between(0, 3));
        const int x = b.input(c.x), w = b.input(c.w);
        std::vector<Tensor> inputs{d.normal(c.x), d.normal(c.w)};
        const bool bias = kind >= 1, activation = kind >= 2;
        const int vector = bias ? b.input({c.y[1]}) : -1;
        if (bias) inputs.push_back(d.normal({c.y[1]}));
        const int y = b.output(c.y);
        int at = bias || activation ? b.inside(c.y) : y;
        b.step(ConvOp{c.window, c.groups}, {x, w}, {at});
        if (bias) {
            const int next = activation ? b.inside(c.y) : y;
            b.step(BiasOp{}, {at, vector}, {next});
            at = next;
        }
        if (activation) b.step(UnaryOp{kind == 2 ? Unary::Relu : Unary::LeakyRelu, 0.1}, {at}, {y});
        return Built{b.problem, inputs};
    });
}

TEST(OneDnnConv, InputGradient) {
    check_convolutions("input", [](Draw& d, const ConvCase& c) {
        ProblemBuilder b;
        const int dy = b.input(c.y), w = b.input(c.w), dx = b.output(c.x);
        b.step(ConvGradInputOp{c.window, c.groups, c.x.slice(2)}, {dy, w}, {dx});
        return Built{b.problem, {d.normal(c.y), d.normal(c.w)}};
    });
}

TEST(OneDnnConv, WeightGradient) {
    check_convolutions("weight", [](Draw& d, const ConvCase& c) {
        ProblemBuilder b;
        const bool bias = d.coin();
        const int x = b.input(c.x), dy = b.input(c.y), dw = b.output(c.w), db = bias ? b.output({c.y[1]}) : -1;
        b.step(ConvGradWeightOp{c.window, c.groups}, {x, dy}, {dw});
        if (bias) b.step(BiasGradOp{}, {dy}, {db});
        return Built{b.problem, {d.normal(c.x), d.normal(c.y)}};
    });
}

TEST(OneDnnConv, RefusesWhatItDoesNotKnow) {
    ProblemBuilder wide;
    wide.step(ConvOp{Window::of({1})}, {wide.input({1, 2, 3}, DType::f64), wide.input({2, 2, 1}, DType::f64)},
              {wide.output({1, 2, 3}, DType::f64)});
    EXPECT_TRUE(onednn_conv().candidates(wide.problem, {}).empty());
    ProblemBuilder crop;
    Window window = Window::of({1});
    window.pad_lo = {-1};
    crop.step(ConvOp{window}, {crop.input({1, 2, 3}), crop.input({2, 2, 1})}, {crop.output({1, 2, 2})});
    EXPECT_TRUE(onednn_conv().candidates(crop.problem, {}).empty());
    ProblemBuilder other;
    other.step(UnaryOp{}, {other.input({4})}, {other.output({4})});
    EXPECT_TRUE(onednn_conv().candidates(other.problem, {}).empty());
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
