// Rearranging: everything here is a few strided copies; sums over dims are a kernel of their own.
#include "kernels/cuda/copy.h"
#include "kernels/cuda/family.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/views.h"

namespace convoy::cuda {

namespace {

struct OneCopy {
    Shape shape;
    CopyEnd src, dst;
};

int64_t dot(const Dims& a, const Dims& b) {
    int64_t sum = 0;
    for (int i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
}

// An operand, or a part of it that begins at `origin`.
CopyEnd end_of(const Operand& o) { return {o.data, o.desc.dtype, strides_of(o.desc.shape, o.layout)}; }
CopyEnd end_at(const Operand& o, const Dims& origin) {
    CopyEnd end = end_of(o);
    end.data = static_cast<std::byte*>(end.data) + dot(origin, end.strides) * size_of(o.desc.dtype);
    return end;
}

std::unique_ptr<Kernel> copies_kernel(Device& device, std::vector<OneCopy> copies) {
    return make_kernel([&device, copies = std::move(copies)](const StepContext&) {
        for (const auto& [shape, src, dst] : copies) start_copy(device, shape, src, dst);
    });
}

const Operand& in(const KernelRequest& request, size_t i = 0) { return operand(request, request.problem.steps[0].inputs[i]); }
const Operand& out(const KernelRequest& request) { return operand(request, request.problem.steps[0].outputs[0]); }

// Every operand in one of the activations' layouts.
std::vector<Candidate> alike(const Problem& p) {
    std::vector<int> all;
    for (int t = p.inputs + p.outputs - 1; t >= 0; --t) all.push_back(t);
    return in_each_layout(p, all);
}
std::vector<Candidate> plain(const Problem& p) { return only_plain(p); }

template <class SomeOp>
bool is(const Problem& p) {
    return steps_are<SomeOp>(p);
}

std::unique_ptr<Kernel> prepare_concat(const KernelRequest& request, Device& device) {
    const int axis = op_of<ConcatOp>(request.problem).axis;
    Dims origin = Dims::filled(out(request).desc.shape.size(), 0);
    std::vector<OneCopy> copies;
    for (size_t i = 0; i < request.problem.steps[0].inputs.size(); ++i) {
        const Operand& x = in(request, i);
        copies.push_back({x.desc.shape, end_of(x), end_at(out(request), origin)});
        origin[axis] += x.desc.shape[axis];
    }
    return copies_kernel(device, std::move(copies));
}

std::unique_ptr<Kernel> prepare_slice(const KernelRequest& request, Device& device) {
    const Operand &x = in(request), &y = out(request);
    return copies_kernel(device, {{y.desc.shape, end_at(x, op_of<SliceOp>(request.problem).start), end_of(y)}});
}

std::unique_ptr<Kernel> prepare_pad(const KernelRequest& request, Device& device) {
    const auto& op = op_of<PadOp>(request.problem);
    const Operand &x = in(request), &y = out(request);
    // What is left of x: from `from` on, `kept` of it.
    Dims from = x.desc.shape, kept = x.desc.shape, at = x.desc.shape;
    for (int d = 0; d < from.size(); ++d) {
        from[d] = std::max<int64_t>(0, -op.lo[d]);
        kept[d] = std::max<int64_t>(0, x.desc.shape[d] - std::max<int64_t>(0, -op.hi[d]) - from[d]);
        at[d] = std::max<int64_t>(0, op.lo[d]);
    }
    const OneCopy copy{kept, end_at(x, from), end_at(y, at)};
    return make_kernel([&device, copy, y, value = op.value](const StepContext&) {
        start_fill(device, y.data, y.desc.dtype, numel(y.desc.shape), value);
        start_copy(device, copy.shape, copy.src, copy.dst);
    });
}

std::unique_ptr<Kernel> prepare_reshape(const KernelRequest& request, Device& device) {
    const Operand &x = in(request), &y = out(request);
    const Shape flat{numel(x.desc.shape)};
    return copies_kernel(device, {{flat, {x.data, x.desc.dtype, {1}}, {y.data, y.desc.dtype, {1}}}});
}

std::unique_ptr<Kernel> prepare_transpose(const KernelRequest& request, Device& device) {
    const auto& order = op_of<TransposeOp>(request.problem).order;
    CopyEnd src = end_of(in(request));
    const Dims strides = src.strides;
    for (int d = 0; d < strides.size(); ++d) src.strides[d] = strides[static_cast<int>(order[d])];
    return copies_kernel(device, {{out(request).desc.shape, src, end_of(out(request))}});
}

std::unique_ptr<Kernel> prepare_expand(const KernelRequest& request, Device& device) {
    CopyEnd src = end_of(in(request));
    for (int d = 0; d < src.strides.size(); ++d)
        if (in(request).desc.shape[d] == 1) src.strides[d] = 0;
    return copies_kernel(device, {{out(request).desc.shape, src, end_of(out(request))}});
}

// A wire is plain, whatever the layout of what is packed into it.
std::vector<Candidate> pack_candidates(const Problem& p) { return in_each_layout(p, {input_of(p, 0, 0)}); }
std::unique_ptr<Kernel> prepare_pack(const KernelRequest& request, Device& device) {
    const Operand &x = in(request), &wire = out(request);
    auto* to = static_cast<std::byte*>(wire.data);
    std::vector<OneCopy> copies;
    for (const Box& box : op_of<PackOp>(request.problem).boxes) {
        copies.push_back({box.shape, end_at(x, box.origin), {to, wire.desc.dtype, row_major_strides(box.shape)}});
        to += numel(box.shape) * size_of(wire.desc.dtype);
    }
    return copies_kernel(device, std::move(copies));
}

std::vector<Candidate> unpack_candidates(const Problem& p) {
    std::vector<int> activations{output_of(p, 0)};
    if (p.steps[0].inputs.size() > 1) activations.push_back(input_of(p, 0, 1));
    return in_each_layout(p, activations);
}
std::unique_ptr<Kernel> prepare_unpack(const KernelRequest& request, Device& device) {
    const auto& op = op_of<UnpackOp>(request.problem);
    const Operand &wire = in(request), &y = out(request);
    auto* from = static_cast<std::byte*>(wire.data);
    std::vector<OneCopy> copies;
    for (const Box& box : op.boxes) {
        copies.push_back({box.shape, {from, wire.desc.dtype, row_major_strides(box.shape)}, end_at(y, box.origin)});
        from += numel(box.shape) * size_of(wire.desc.dtype);
    }
    if (!op.kept.empty()) copies.push_back({op.kept.shape, end_at(in(request, 1), op.kept.origin), end_at(y, op.kept_at)});
    return copies_kernel(device, std::move(copies));
}

// --- Sums over dims -------------------------------------------------------------------------------------------------------------

// The elements behind one of y: a box of x with the dims that y has lost.
struct Summing {
    int rank;
    int64_t box[Dims::kMost], cells[Dims::kMost], strides[Dims::kMost];
    int64_t in_box;
};

template <class T>
__global__ void __launch_bounds__(kThreads) sum_to(Summing s, const T* x, T* y) {
    int64_t start = 0, rest = blockIdx.x;
    for (int d = s.rank - 1; d >= 0; --d) {
        start += rest % s.cells[d] * s.strides[d];
        rest /= s.cells[d];
    }
    double sum = 0;
    for (int64_t i = threadIdx.x; i < s.in_box; i += blockDim.x) {
        int64_t offset = start, inner = i;
        for (int d = s.rank - 1; d >= 0; --d) {
            offset += inner % s.box[d] * s.strides[d];
            inner /= s.box[d];
        }
        sum += static_cast<double>(widen(x[offset]));
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) y[blockIdx.x] = narrow<T>(static_cast<Wide<T>>(sum));
}

std::unique_ptr<Kernel> prepare_sum_to(const KernelRequest& request, Device& device) {
    const Operand &x = in(request), &y = out(request);
    const Dims strides = row_major_strides(x.desc.shape);
    Summing s{x.desc.shape.size(), {}, {}, {}, 1};
    for (int d = 0; d < s.rank; ++d) {
        s.box[d] = y.desc.shape[d] == 1 ? x.desc.shape[d] : 1;
        s.cells[d] = y.desc.shape[d];
        s.strides[d] = strides[d];
        s.in_box *= s.box[d];
    }
    std::unique_ptr<Kernel> kernel;
    with_floating(x.desc.dtype, [&](auto zero) {
        using T = decltype(zero);
        kernel = make_kernel([&device, s, cells = numel(y.desc.shape), from = static_cast<const T*>(x.data),
                              to = static_cast<T*>(y.data)](const StepContext&) {
            if (cells > 0) launch(device, sum_to<T>, dim3(static_cast<unsigned>(cells)), kThreads, s, from, to);
        });
    });
    return kernel;
}

}  // namespace

Family rearrange_family() {
    return {"rearrange",
            {{is<ConcatOp>, alike, prepare_concat},
             {is<SliceOp>, alike, prepare_slice},
             {is<PadOp>, alike, prepare_pad},
             {is<ReshapeOp>, plain, prepare_reshape},
             {is<TransposeOp>, plain, prepare_transpose},
             {is<ExpandOp>, alike, prepare_expand},
             {is<PackOp>, pack_candidates, prepare_pack},
             {is<UnpackOp>, unpack_candidates, prepare_unpack},
             {is<SumToOp>, plain, prepare_sum_to}}};
}

}  // namespace convoy::cuda
