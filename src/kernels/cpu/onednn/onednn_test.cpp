// oneDNN's convolutions and matrix products against the reference, on random problems, by every candidate that is offered.
#include "kernels/cpu/onednn/common.h"
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
        if (rank == 2 && d.coin()) window = {{3, 3}, {1, 1}, {1, 1}, d.dims(2, 0, 1), d.dims(2, 0, 1)};
        const int64_t groups = d.between(0, 3) == 0 ? d.between(2, 4) : 1;
        const bool depthwise = groups > 1 && d.coin();
        const int64_t c = groups * (depthwise ? 1 : d.between(1, 20)), f = groups * (depthwise ? 1 : d.between(1, 36)), n = d.between(1, 3);
        const Dims in = d.dims(rank, 1, most), out = window.output(in);
        if (numel(out) == 0) continue;
        return {window, groups, join({n, c}, in), join({f, c / groups}, window.kernel), join({n, f}, out)};
    }
}

// Three dims, 3x3x3, stride 1, multiples of 16 channels: what Winograd's method in three dims takes. Depths short of a tile and odd ones, different
// padding on all sides: up to 2 of the depth; of the others what the library's method takes.
ConvCase draw_winograd3d(Draw& d) {
    while (true) {
        Window window{{3, 3, 3}, {1, 1, 1}, {1, 1, 1}, d.dims(3, 0, 1), d.dims(3, 0, 1)};
        window.pad_lo[0] = d.between(0, 2);
        window.pad_hi[0] = d.between(0, 2);
        const int64_t c = 16 * d.between(1, 3), f = 16 * d.between(1, 3), n = d.between(1, 3);
        const Dims in = d.dims(3, 1, 11), out = window.output(in);
        if (numel(out) == 0) continue;
        return {window, 1, join({n, c}, in), {f, c, 3, 3, 3}, join({n, f}, out)};
    }
}

using Built = std::pair<Problem, std::vector<Tensor>>;

// A convolution, perhaps with a bias and an activation.
Built forward_problem(Draw& d, const ConvCase& c) {
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
    return {b.problem, inputs};
}

Built input_gradient(Draw& d, const ConvCase& c) {
    ProblemBuilder b;
    const int dy = b.input(c.y), w = b.input(c.w), dx = b.output(c.x);
    b.step(ConvGradInputOp{c.window, c.groups, c.x.slice(2)}, {dy, w}, {dx});
    return {b.problem, {d.normal(c.y), d.normal(c.w)}};
}

// Perhaps with the bias's gradient.
Built weight_gradient(Draw& d, const ConvCase& c) {
    ProblemBuilder b;
    const bool bias = d.coin();
    const int x = b.input(c.x), dy = b.input(c.y), dw = b.output(c.w), db = bias ? b.output({c.y[1]}) : -1;
    b.step(ConvGradWeightOp{c.window, c.groups}, {x, dy}, {dw});
    if (bias) b.step(BiasGradOp{}, {dy}, {db});
    return {b.problem, {d.normal(c.x), d.normal(c.y)}};
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

TEST(OneDnnConv, Forward) { check_convolutions("forward", forward_problem); }
TEST(OneDnnConv, InputGradient) { check_convolutions("input", input_gradient); }
TEST(OneDnnConv, WeightGradient) { check_convolutions("weight", weight_gradient); }

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

// Every candidate: F(2, 3) and F(4, 3) along the depth, blocked and channels-last; in one chunk and in several.
void check_winograd3d(const char* name, Built (*build)(Draw&, const ConvCase&)) {
    int offered = 0;
    for (int i = 0; i < test_count(20, 200); ++i) {
        Draw d(name, i);
        const ConvCase c = draw_winograd3d(d);
        const auto [problem, inputs] = build(d, c);
        const auto implementation = make_winograd3d(i % 2 == 0 ? 1 << 30 : 1 << 16);
        if (implementation->candidates(problem, {}).empty()) continue;
        ++offered;
        SCOPED_TRACE(fmt::format("{} on {}, padding {} and {}", text_of(problem), to_string(c.x), to_string(c.window.pad_lo),
                                 to_string(c.window.pad_hi)));
        expect_agreement(*implementation, problem, inputs, {.tolerance = 2e-5, .number = i});
    }
    const bool here = dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core;
    EXPECT_EQ(offered >= test_count(20, 200) * 3 / 10, here)
        << offered;  // of the input gradients only those with equal padding above and below
}

TEST(Winograd3d, Forward) { check_winograd3d("winograd forward", forward_problem); }
TEST(Winograd3d, InputGradient) { check_winograd3d("winograd input", input_gradient); }
TEST(Winograd3d, WeightGradient) { check_winograd3d("winograd weight", weight_gradient); }

TEST(Winograd3d, RefusesWhatItDoesNotKnow) {
    const auto candidates = [](const Window& window, int64_t groups, int64_t channels, DType type) {
        ProblemBuilder b;
        const Shape x{1, channels, 8, 8, 8}, w{16, channels / groups, window.kernel[0], 3, 3};
        b.step(ConvOp{window, groups}, {b.input(x, type), b.input(w, type)}, {b.output(join({1, 16}, window.output(x.slice(2))), type)});
        return winograd3d().candidates(b.problem, {});
    };
    const Window good = Window::of({3, 3, 3});
    Window strided = good, dilated = good;
    strided.stride = {2, 1, 1};
    dilated.dilation = {1, 1, 2};
    EXPECT_TRUE(candidates(strided, 1, 16, DType::f32).empty());
    EXPECT_TRUE(candidates(dilated, 1, 16, DType::f32).empty());
    EXPECT_TRUE(candidates(Window::of({2, 3, 3}), 1, 16, DType::f32).empty());
    EXPECT_TRUE(candidates(good, 2, 32, DType::f32).empty());
    EXPECT_TRUE(candidates(good, 1, 17, DType::f32).empty());
    EXPECT_TRUE(candidates(good, 1, 16, DType::f64).empty());
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
