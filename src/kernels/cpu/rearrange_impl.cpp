// Joining and slicing along channels. In every layout the channels of an operand are contiguous stretches: whole planes of a sample (plain,
// blocked where cuts lie between blocks), or the channels of a pixel (channels-last).
#include <cstring>

#include "kernels/cpu/own.h"

namespace convoy::cpu {

namespace {

using vec::VectorKernels;

// `rows` stretches of `length` elements, at these distances from each other.
struct Stretches {
    const float* from;
    float* to;
    int64_t rows, length, from_stride, to_stride;
};

void copy(const Stretches& s, int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
        std::memcpy(s.to + row * s.to_stride, s.from + row * s.from_stride, static_cast<size_t>(s.length) * sizeof(float));
}

// How many stretches an operand has, and their elements per channel.
struct Striding {
    int64_t rows, per_channel;
};
Striding striding(const Shape& shape, const Layout& layout) {
    const int64_t s = product(shape, 2, shape.size());
    if (!layout.is_plain() && layout.inner.empty()) return {shape[0] * s, 1};
    return {shape[0], s};
}
int64_t padded_channels(const Shape& shape, const Layout& layout) { return padded_shape(shape, layout)[1]; }

// Whether channels [start, start + size) of `channels` are whole blocks, but for what is missing to the last one of all.
bool cut_between_blocks(int64_t start, int64_t size, int64_t channels, const Layout& layout) {
    if (layout.inner.empty()) return true;
    const int64_t block = layout.inner[0].size;
    return start % block == 0 && (size % block == 0 || start + size == channels);
}

bool all_floats(const Problem& p) {
    for (const auto& t : p.tensors)
        if (t.dtype != DType::f32) return false;
    return true;
}

bool accepts_concat(const Problem& p) {
    return steps_are<ConcatOp>(p) && op_of<ConcatOp>(p).axis == 1 && all_floats(p) && shape_of(p, output_of(p, 0)).size() >= 2;
}

std::vector<Candidate> concat_candidates(const Problem& p, const CpuContext& context) {
    const auto& step = p.steps[0];
    const Shape& y = shape_of(p, step.outputs[0]);
    std::vector<Candidate> result;
    for (const auto& layout : activation_layouts(y, context)) {
        int64_t start = 0;
        bool fits = true;
        for (const int x : step.inputs) {
            fits = fits && cut_between_blocks(start, shape_of(p, x)[1], y[1], layout);
            start += shape_of(p, x)[1];
        }
        Offer offer{.layout = layout, .activations = step.inputs};
        offer.activations.push_back(step.outputs[0]);
        if (fits) result.push_back(candidate_of(p, context, offer));
    }
    return result;
}

std::unique_ptr<Kernel> prepare_concat(const KernelRequest& request, const CpuContext& context, const VectorKernels&) {
    const auto& step = request.problem.steps[0];
    const Operand& y = operand(request, step.outputs[0]);
    const auto [rows, per_channel] = striding(y.desc.shape, y.layout);
    const int64_t row = padded_channels(y.desc.shape, y.layout) * per_channel;
    std::vector<Stretches> pieces;
    int64_t at = 0;
    for (const int t : step.inputs) {
        const Operand& x = operand(request, t);
        const int64_t length = padded_channels(x.desc.shape, x.layout) * per_channel;
        pieces.push_back({static_cast<const float*>(x.data), static_cast<float*>(y.data) + at, rows, length, length, row});
        at += length;
    }
    return make_kernel([pieces = std::move(pieces), count = rows, parts = parts_for(context, rows * row)](const StepContext&) {
        in_parts(parts, count, [&](int, int64_t begin, int64_t end) {
            for (const auto& piece : pieces) copy(piece, begin, end);
        });
    });
}

// Only channels are cut, all other dims are whole.
bool accepts_slice(const Problem& p) {
    if (!steps_are<SliceOp>(p) || !all_floats(p) || shape_of(p, 0).size() < 2) return false;
    const Shape &x = shape_of(p, 0), &y = shape_of(p, 1);
    for (int d = 0; d < x.size(); ++d)
        if (d != 1 && x[d] != y[d]) return false;
    return true;
}

std::vector<Candidate> slice_candidates(const Problem& p, const CpuContext& context) {
    std::vector<Candidate> result;
    for (const auto& layout : activation_layouts(shape_of(p, 0), context))
        if (cut_between_blocks(op_of<SliceOp>(p).start[1], shape_of(p, 1)[1], shape_of(p, 0)[1], layout))
            result.push_back(candidate_of(p, context, {.layout = layout, .activations = {0, 1}}));
    return result;
}

std::unique_ptr<Kernel> prepare_slice(const KernelRequest& request, const CpuContext& context, const VectorKernels&) {
    const Operand &x = request.inputs[0], &y = request.outputs[0];
    const auto [rows, per_channel] = striding(x.desc.shape, x.layout);
    const int64_t from_row = padded_channels(x.desc.shape, x.layout) * per_channel,
                  row = padded_channels(y.desc.shape, y.layout) * per_channel;
    const int64_t start = op_of<SliceOp>(request.problem).start[1] * per_channel;
    const Stretches piece{static_cast<const float*>(x.data) + start, static_cast<float*>(y.data), rows, row, from_row, row};
    return make_kernel([=, count = rows, parts = parts_for(context, rows * row)](const StepContext&) {
        in_parts(parts, count, [&](int, int64_t begin, int64_t end) { copy(piece, begin, end); });
    });
}

}  // namespace

std::unique_ptr<Implementation> make_rearrange_implementation(const VectorKernels& kernels) {
    return implementation_of(
        "rearrange", {{accepts_concat, concat_candidates, prepare_concat}, {accepts_slice, slice_candidates, prepare_slice}}, kernels);
}

const Implementation& rearrange_implementation() {
    static const auto implementation = make_rearrange_implementation(vector_kernels());
    return *implementation;
}

}  // namespace convoy::cpu
