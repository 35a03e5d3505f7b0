#include "kernels/cpu/conv/view.h"

#include <algorithm>

namespace convoy::cpu {

namespace {

int64_t floor_div(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

bool fusable(const UnaryOp& op) { return op.kind == Unary::Relu || op.kind == Unary::LeakyRelu; }

}  // namespace

std::optional<ConvView> conv_view(const Problem& problem) {
    if (problem.steps.empty() || problem.compute != DType::f32) return std::nullopt;
    const auto conv = conv_problem(problem);
    if (!conv || (conv->activation && !fusable(*conv->activation))) return std::nullopt;
    for (const auto& t : problem.tensors)
        if (t.dtype != DType::f32 || numel(t.shape) == 0) return std::nullopt;
    const int rank = conv->window.rank();
    if (rank < 1 || rank > 3) return std::nullopt;
    ConvView v{
        .conv = *conv, .x = shape_of(problem, conv->x), .w = shape_of(problem, conv->w), .y = shape_of(problem, conv->y), .rank = rank};
    v.n = v.x[0];
    v.c = v.x[1];
    v.f = v.y[1];
    v.groups = conv->groups;
    for (int i = 0; i < rank; ++i) {
        const auto to = static_cast<size_t>(3 - rank + i);
        v.in[to] = v.x[i + 2];
        v.out[to] = v.y[i + 2];
        v.kernel[to] = conv->window.kernel[i];
        v.stride[to] = conv->window.stride[i];
        v.dilation[to] = conv->window.dilation[i];
        v.pad[to] = conv->window.pad_lo[i];
    }
    return v;
}

Range ConvView::outputs(size_t i, int64_t k) const {
    const int64_t shift = pad[i] - k * dilation[i];
    const Range all{-floor_div(-shift, stride[i]), floor_div(in[i] - 1 + shift, stride[i]) + 1};
    return {std::max<int64_t>(all.begin, 0), std::min(all.end, out[i])};
}

Three ConvView::tap(int64_t number) const { return {number / (kernel[1] * kernel[2]), number / kernel[2] % kernel[1], number % kernel[2]}; }

double ConvView::operations() const {
    return 2.0 * static_cast<double>(n * f) * static_cast<double>(channels() * taps()) * static_cast<double>(out_points());
}

double ConvView::used_part() const {
    double part = 1;
    for (size_t i = 0; i < 3; ++i) {
        int64_t used = 0;
        for (int64_t k = 0; k < kernel[i]; ++k) used += outputs(i, k).size();
        part *= static_cast<double>(used) / static_cast<double>(out[i] * kernel[i]);
    }
    return part;
}

}  // namespace convoy::cpu
