// Pooling by the own kernels: maxima, averages, adaptive averages, and their gradients.
#include <algorithm>
#include <optional>

#include "kernels/cpu/own.h"
#include "kernels/cpu/pool_links.h"

namespace convoy::cpu {

namespace {

using vec::PoolArgs;
using vec::VectorKernels;
constexpr int kNone = -1;

// Pooling keeps samples apart, so channels-last has a plane per sample.
struct Planes {
    int64_t count, lanes;
    Planes(const Shape& shape, const Layout& layout) {
        const Blocks b = blocks_of(shape, layout);
        count = b.n * b.blocks;
        lanes = b.lanes;
    }
};

bool pools(const Problem& p, int tensor) {
    const int rank = shape_of(p, tensor).size();
    return rank >= 3 && rank <= 5;
}

// In the blocked layout a window that sees nothing would put its -infinity into the padding too.
bool suits(const Layout& layout, const Shape& shape, const PoolDims& dims) {
    if (layout.inner.empty() || shape[1] % layout.inner[0].size == 0) return true;
    return dims[0].all_see() && dims[1].all_see() && dims[2].all_see();
}

// A kernel that runs fn over all rows of results.
using PoolFunction = void (*)(const PoolArgs&, int64_t, int64_t);
std::unique_ptr<Kernel> rows_kernel(PoolLinks links, PoolArgs args, int64_t planes, const CpuContext& context, PoolFunction fn) {
    links.bind(args);
    const int64_t rows = planes * args.here[0] * args.here[1];
    const int64_t here = args.here[0] * args.here[1] * args.here[2], there = args.there[0] * args.there[1] * args.there[2];
    const int parts = parts_for(context, planes * std::max(here, there) * args.lanes);
    return make_kernel([=, kept = std::move(links)](const StepContext&) {  // vectors keep their place when they are moved
        in_parts(parts, rows, [&](int, int64_t begin, int64_t end) { fn(args, begin, end); });
    });
}

vec::PlainMaxArgs plain_args(const PoolDims& dims) {
    vec::PlainMaxArgs args;
    for (size_t d = 0; d < 3; ++d) {
        args.in[d] = dims[d].in;
        args.out[d] = dims[d].out;
        args.kernel[d] = dims[d].kernel;
        args.stride[d] = dims[d].stride;
        args.dilation[d] = dims[d].dilation;
        args.pad[d] = dims[d].pad;
    }
    return args;
}

// --- Maxima ---------------------------------------------------------------------------------------------------------------------

bool accepts_max(const Problem& p) { return steps_are<MaxPoolOp>(p) && pools(p, 0); }

PoolDims max_dims(const Problem& p) { return window_dims(op_of<MaxPoolOp>(p).window, shape_of(p, 0), shape_of(p, output_of(p, 0, 0))); }

std::vector<Candidate> max_candidates(const Problem& p, const CpuContext& context) {
    std::vector<Candidate> result;
    for (const auto& layout : activation_layouts(shape_of(p, 0), context)) {
        if (!suits(layout, shape_of(p, 0), max_dims(p))) continue;
        result.push_back(candidate_of(
            p, context,
            {.layout = layout, .activations = {0, output_of(p, 0, 0), output_of(p, 0, 1)}, .slowness = layout.is_plain() ? 2.0 : 1.0}));
    }
    return result;
}

std::unique_ptr<Kernel> prepare_max(const KernelRequest& request, const CpuContext& context, const VectorKernels& kernels) {
    const Problem& p = request.problem;
    const Operand &x = request.inputs[0], &y = operand(request, output_of(p, 0, 0)), &where = operand(request, output_of(p, 0, 1));
    const bool bytes = where.desc.dtype == DType::u8;
    const PoolDims dims = max_dims(p);
    const Planes planes(x.desc.shape, x.layout);
    if (x.layout.is_plain()) {
        vec::PlainMaxArgs args = plain_args(dims);
        args.x = static_cast<const float*>(x.data);
        args.x_elements = numel(x.desc.shape);
        args.y = static_cast<float*>(y.data);
        args.new_where = where.data;
        const int64_t rows = planes.count * dims[0].out * dims[1].out;
        return make_kernel([=, parts = parts_for(context, numel(x.desc.shape)),
                            run = bytes ? kernels.plain_max_pool_u8 : kernels.plain_max_pool_i32](const StepContext&) {
            in_parts(parts, rows, [&](int, int64_t begin, int64_t end) { run(args, begin, end); });
        });
    }
    PoolArgs args;
    args.lanes = planes.lanes;
    args.source = static_cast<const float*>(x.data);
    args.result = static_cast<float*>(y.data);
    args.new_where = where.data;
    return rows_kernel(PoolLinks(dims, false), args, planes.count, context, bytes ? kernels.max_pool_u8 : kernels.max_pool_i32);
}

// [MaxPoolGrad] and [gradient of a ReLU, MaxPoolGrad].
struct MaxGradient {
    int dy, where, mask = kNone, dx;
};

std::optional<MaxGradient> max_gradient(const Problem& p) {
    const bool masked = steps_are<UnaryGradOp, MaxPoolGradOp>(p);
    if (!masked && !steps_are<MaxPoolGradOp>(p)) return std::nullopt;
    const size_t last = p.steps.size() - 1;
    MaxGradient g{.dy = input_of(p, last, 0), .where = input_of(p, last, 1), .dx = output_of(p, last)};
    if (!pools(p, g.dy)) return std::nullopt;
    if (masked) {
        if (!is_relu(p, 0) || output_of(p, 0) != g.dy || !is_inside(p, g.dy) || !is_input(p, g.where)) return std::nullopt;
        g.mask = input_of(p, 0, 0);
        g.dy = input_of(p, 0, 1);
    }
    return g;
}
bool accepts_max_grad(const Problem& p) { return max_gradient(p).has_value(); }

std::vector<Candidate> max_grad_candidates(const Problem& p, const CpuContext& context) {
    const auto g = *max_gradient(p);
    std::vector<Candidate> result;
    for (const auto& layout : activation_layouts(shape_of(p, g.dy), context)) {
        Offer offer{.layout = layout, .activations = {g.dy, g.where, g.dx}, .slowness = layout.is_plain() ? 2.0 : 1.0};
        if (g.mask != kNone) offer.activations.push_back(g.mask);
        result.push_back(candidate_of(p, context, offer));
    }
    return result;
}

// Where each element of a window lies in a plane of inputs, from its first element on.
std::vector<int32_t> tap_offsets(const PoolDims& dims) {
    std::vector<int32_t> offsets;
    for (int64_t k0 = 0; k0 < dims[0].kernel; ++k0)
        for (int64_t k1 = 0; k1 < dims[1].kernel; ++k1)
            for (int64_t k2 = 0; k2 < dims[2].kernel; ++k2)
                offsets.push_back(static_cast<int32_t>((k0 * dims[0].dilation * dims[1].in + k1 * dims[1].dilation) * dims[2].in +
                                                       k2 * dims[2].dilation));
    return offsets;
}

std::unique_ptr<Kernel> prepare_max_grad(const KernelRequest& request, const CpuContext& context, const VectorKernels& kernels) {
    const Problem& p = request.problem;
    const auto g = *max_gradient(p);
    const Operand &dx = operand(request, g.dx), &dy = operand(request, g.dy), &where = operand(request, g.where);
    const bool bytes = where.desc.dtype == DType::u8;
    const PoolDims dims = window_dims(op_of<MaxPoolGradOp>(p, p.steps.size() - 1).window, dx.desc.shape, dy.desc.shape);
    const Planes planes(dy.desc.shape, dy.layout);
    const float* const mask = g.mask == kNone ? nullptr : floats(request, g.mask);
    // Scattering must be sure to hit an input. In a part of a tensor the winner of a window may lie in a neighbour's rows, which look like padding here.
    const auto hits = [whole = dx.desc.shape == dx.desc.global](const PoolDim& d) {
        return d.all_see() && (whole || (d.pad <= 0 && (d.out - 1) * d.stride - d.pad + (d.kernel - 1) * d.dilation < d.in));
    };
    if (dy.layout.is_plain() && std::all_of(dims.begin(), dims.end(), hits)) {
        vec::PlainMaxArgs args = plain_args(dims);
        args.dy = static_cast<const float*>(dy.data);
        args.dx = static_cast<float*>(dx.data);
        args.where = where.data;
        args.mask = mask;
        return make_kernel([=, offsets = tap_offsets(dims), parts = parts_for(context, numel(dx.desc.shape)),
                            run = bytes ? kernels.plain_max_pool_grad_u8 : kernels.plain_max_pool_grad_i32](const StepContext&) mutable {
            args.tap_offsets = offsets.data();
            in_parts(parts, planes.count, [&](int, int64_t begin, int64_t end) { run(args, begin, end); });
        });
    }
    PoolArgs args;
    args.lanes = planes.lanes;
    args.source = static_cast<const float*>(dy.data);
    args.result = static_cast<float*>(dx.data);
    args.where = where.data;
    args.mask = mask;
    return rows_kernel(PoolLinks(dims, true), args, planes.count, context, bytes ? kernels.max_pool_grad_u8 : kernels.max_pool_grad_i32);
}

// --- Averages -------------------------------------------------------------------------------------------------------------------

struct Averaging {
    PoolDims dims;
    bool gradient, count_padding;
    bool is_global() const {
        return dims[0].adaptive || dims[1].adaptive || dims[2].adaptive ? dims[0].out * dims[1].out * dims[2].out == 1 : false;
    }
};

bool whole_in_space(const TensorDesc& t) { return t.shape.slice(2) == t.global.slice(2); }

std::optional<Averaging> averaging(const Problem& p) {
    if (p.steps.size() != 1 || p.inputs < 1 || p.outputs < 1 || !pools(p, 0)) return std::nullopt;
    const Shape &in = shape_of(p, 0), &out = shape_of(p, 1);
    if (steps_are<AveragePoolOp>(p)) {
        const auto& op = op_of<AveragePoolOp>(p);
        return Averaging{window_dims(op.window, in, out), false, op.count_padding};
    }
    if (steps_are<AveragePoolGradOp>(p)) {
        const auto& op = op_of<AveragePoolGradOp>(p);
        return Averaging{window_dims(op.window, out, in), true, op.count_padding};
    }
    if (!steps_are<AdaptivePoolOp>(p) && !steps_are<AdaptivePoolGradOp>(p)) return std::nullopt;
    // Adaptive windows of a part depend on where it lies; the reference knows that.
    if (!whole_in_space(p.tensors[0]) || !whole_in_space(p.tensors[1])) return std::nullopt;
    if (steps_are<AdaptivePoolOp>(p)) return Averaging{adaptive_dims(in, out), false, false};
    return Averaging{adaptive_dims(out, in), true, false};
}
bool accepts_average(const Problem& p) { return averaging(p).has_value(); }

std::vector<Candidate> average_candidates(const Problem& p, const CpuContext& context) {
    const bool fast = averaging(p)->is_global();
    std::vector<Candidate> result;
    for (const auto& layout : activation_layouts(shape_of(p, 0), context))
        result.push_back(
            candidate_of(p, context, {.layout = layout, .activations = {0, 1}, .slowness = layout.is_plain() && !fast ? 12.0 : 1.0}));
    return result;
}

std::unique_ptr<Kernel> prepare_average(const KernelRequest& request, const CpuContext& context, const VectorKernels& kernels) {
    const auto a = *averaging(request.problem);
    const Operand &x = request.inputs[0], &y = request.outputs[0];
    const Planes planes(x.desc.shape, x.layout);
    if (x.layout.is_plain() && a.is_global()) {
        const int64_t elements = a.dims[0].in * a.dims[1].in * a.dims[2].in;
        return make_kernel([=, from = static_cast<const float*>(x.data), to = static_cast<float*>(y.data),
                            parts = parts_for(context, planes.count * elements),
                            run = a.gradient ? kernels.plane_fills : kernels.plane_means](const StepContext&) {
            in_parts(parts, planes.count, [&](int, int64_t begin, int64_t end) { run(from, elements, to, begin, end); });
        });
    }
    PoolArgs args;
    args.lanes = planes.lanes;
    args.source = static_cast<const float*>(x.data);
    args.result = static_cast<float*>(y.data);
    return rows_kernel(PoolLinks(a.dims, a.gradient, a.count_padding), args, planes.count, context,
                       a.gradient ? kernels.average_pool_grad : kernels.average_pool);
}

}  // namespace

std::unique_ptr<Implementation> make_pool_implementation(const VectorKernels& kernels) {
    return implementation_of("pool",
                             {{accepts_max, max_candidates, prepare_max},
                              {accepts_max_grad, max_grad_candidates, prepare_max_grad},
                              {accepts_average, average_candidates, prepare_average}},
                             kernels);
}

const Implementation& pool_implementation() {
    static const auto implementation = make_pool_implementation(vector_kernels());
    return *implementation;
}

}  // namespace convoy::cpu
