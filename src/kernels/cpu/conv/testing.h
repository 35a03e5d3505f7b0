// For tests of convolutions: random ones of every kind, as problems of each direction with what may be fused to them.
#pragma once

#include <utility>
#include <vector>

#include "kernels/cpu/conv/convolution.h"
#include "kernels/cpu/own_testing.h"

namespace convoy::cpu::testing {

struct ConvCase {
    Window window;
    int64_t groups = 1;
    Shape x, w, y;
};

// What an algorithm is made for: anything; stride 1; windows of 3 without stride; windows of one element.
enum class Kind : uint8_t { Any, Dense, Three, Pointwise };

struct CaseLimits {
    Kind kind = Kind::Any;
    int rank = 2;  // 2 also draws one dim now and then
    int64_t pad_least = -1;
    int64_t multiple = 1;  // of channels
};

inline ConvCase draw_case(Draw& d, const CaseLimits& limits) {
    while (true) {
        const int rank = limits.rank == 2 && d.between(0, 5) == 0 ? 1 : limits.rank;
        const int64_t most = rank == 3 ? 7 : 14;
        Window window{d.dims(rank, 1, 4), d.dims(rank, 1, 3), d.dims(rank, 1, 2), d.dims(rank, limits.pad_least, 2),
                      d.dims(rank, limits.pad_least, 2)};
        const Dims ones = Dims::filled(rank, 1);
        if (limits.kind == Kind::Pointwise) {
            window.kernel = window.dilation = ones;
            window.pad_lo = window.pad_hi = Dims::filled(rank, 0);
            if (d.coin()) window.stride = ones;
        }
        if (limits.kind == Kind::Any && d.between(0, 2) == 0) window.stride = ones;
        if (limits.kind == Kind::Dense && d.between(0, 3) == 0) window.kernel = d.dims(rank, 4, rank == 3 ? 5 : 7);
        if (limits.kind == Kind::Dense || limits.kind == Kind::Three) window.stride = ones;
        if (limits.kind == Kind::Three) {
            window.kernel = Dims::filled(rank, 3);
            window.dilation = ones;
        }
        int64_t groups = d.between(0, 3) == 0 ? d.between(2, 4) : 1;
        const bool depthwise = groups > 1 && d.coin(), whole = d.between(0, 3) == 0;
        const auto channels = [&](int64_t largest) {
            if (whole || limits.multiple > 1) return 16 * d.between(1, 2);
            return depthwise ? 1 : d.between(1, largest);
        };
        if (limits.multiple > 1) groups = 1;
        const int64_t c = groups * channels(20), f = groups * channels(36), n = d.between(1, 3);
        const Dims in = d.dims(rank, 1, most), out = window.output(in);
        if (numel(out) == 0) continue;
        return {window, groups, join({n, c}, in), join({f, c / groups}, window.kernel), join({n, f}, out)};
    }
}

using Built = std::pair<Problem, std::vector<Tensor>>;

// A convolution, perhaps with a bias and an activation.
inline Built forward_problem(Draw& d, const ConvCase& c) {
    ProblemBuilder b;
    const int kind = static_cast<int>(d.between(0, 4));
    const int x = b.input(c.x), w = b.input(c.w);
    std::vector<Tensor> inputs{d.normal(c.x), d.normal(c.w)};
    const bool bias = kind >= 1 && kind < 4, activation = kind >= 2;
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
    if (activation) b.step(UnaryOp{kind == 3 ? Unary::LeakyRelu : Unary::Relu, 0.1}, {at}, {y});
    return {b.problem, inputs};
}

inline Built input_gradient(Draw& d, const ConvCase& c) {
    ProblemBuilder b;
    const int dy = b.input(c.y), w = b.input(c.w), dx = b.output(c.x);
    b.step(ConvGradInputOp{c.window, c.groups, c.x.slice(2)}, {dy, w}, {dx});
    return {b.problem, {d.normal(c.y), d.normal(c.w)}};
}

// Perhaps with the bias's gradient.
inline Built weight_gradient(Draw& d, const ConvCase& c) {
    ProblemBuilder b;
    const bool bias = d.coin();
    const int x = b.input(c.x), dy = b.input(c.y), dw = b.output(c.w), db = bias ? b.output({c.y[1]}) : -1;
    b.step(ConvGradWeightOp{c.window, c.groups}, {x, dy}, {dw});
    if (bias) b.step(BiasGradOp{}, {dy}, {db});
    return {b.problem, {d.normal(c.x), d.normal(c.y)}};
}

inline Built problem_of(Draw& d, const ConvCase& c, Direction direction) {
    if (direction == Direction::Forward) return forward_problem(d, c);
    return direction == Direction::GradInput ? input_gradient(d, c) : weight_gradient(d, c);
}

}  // namespace convoy::cpu::testing
