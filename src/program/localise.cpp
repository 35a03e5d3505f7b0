#include "program/localise.h"

#include <algorithm>

#include "base/error.h"
#include "model/upsampling.h"

namespace convoy {

namespace {

using Types = std::vector<ValueType>;

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
int64_t ceil_div(int64_t a, int64_t b) { return -floor_div(-a, b); }

// One op on its way: the boxes are changed in place.
struct Local {
    const Types& in_types;
    const Types& out_types;
    std::vector<Box>& in;
    const std::vector<Box>& out;
};

// --- Windows. Output o reads inputs o*stride - pad + k*dilation. ---

// Sets the input's box along spatial dim i to what the outputs of a box read, and the window's padding to what of it lies outside. Rows that
// no window reads stay with the part before them, so that a part is not copied for the sake of leaving them out.
void read_window(Window& w, int i, const Box& output, int64_t output_length, int64_t input_length, Box& input) {
    const int d = 2 + i;
    if (output.shape[d] == output_length) {
        input = input.with(d, 0, input_length);
        return;
    }
    const int64_t lo = output.begin(d) * w.stride[i] - w.pad_lo[i];
    const int64_t hi = (output.end(d) - 1) * w.stride[i] - w.pad_lo[i] + w.extent(i);
    const int64_t next = output.end(d) == output_length ? input_length : output.end(d) * w.stride[i] - w.pad_lo[i];
    const int64_t begin = std::clamp<int64_t>(lo, 0, input_length);
    const int64_t end = output.shape[d] == 0 ? begin : std::clamp(std::max(hi, next), begin, input_length);
    input = input.with(d, begin, end);
    w.pad_lo[i] = std::max<int64_t>(0, begin - lo);
    w.pad_hi[i] = std::max<int64_t>(0, hi - end);
}

// The reverse: which outputs touch the inputs of this box, with the padding that puts them in the right place.
void touch_window(Window& w, int i, const Box& input, int64_t input_length, int64_t output_length, Box& output) {
    const int d = 2 + i;
    if (input.shape[d] == input_length) {
        output = output.with(d, 0, output_length);
        return;
    }
    const int64_t first = input.begin(d) + w.pad_lo[i], last = input.end(d) - 1 + w.pad_lo[i];
    int64_t begin = std::min(ceil_div(first - (w.extent(i) - 1), w.stride[i]), floor_div(first, w.stride[i]));
    int64_t end = floor_div(last, w.stride[i]) + 1;
    begin = std::clamp<int64_t>(begin, 0, output_length);
    end = input.shape[d] == 0 ? begin : std::clamp(end, begin, output_length);
    output = output.with(d, begin, end);
    w.pad_lo[i] = std::max<int64_t>(0, first - begin * w.stride[i]);
    w.pad_hi[i] = std::max<int64_t>(0, (end - begin - 1) * w.stride[i] + w.extent(i) - w.pad_lo[i] - input.shape[d]);
}

// All spatial dims: input `x` as the outputs in `y` read it.
void read_windows(Window& w, const Box& y, const Shape& y_whole, const Shape& x_whole, Box& x) {
    for (int i = 0; i < w.rank(); ++i) read_window(w, i, y, y_whole[2 + i], x_whole[2 + i], x);
}
void touch_windows(Window& w, const Box& x, const Shape& x_whole, const Shape& y_whole, Box& y) {
    for (int i = 0; i < w.rank(); ++i) touch_window(w, i, x, x_whole[2 + i], y_whole[2 + i], y);
}

void fit(ConvOp& op, Local& l) {
    op.groups = op.groups > 1 ? l.in[0].shape[1] / l.in_types[1].shape[1] : 1;
    read_windows(op.window, l.out[0], l.out_types[0].shape, l.in_types[0].shape, l.in[0]);
}
void fit(ConvGradInputOp& op, Local& l) {
    op.groups = op.groups > 1 ? l.out[0].shape[1] / l.in_types[1].shape[1] : 1;
    op.input = l.out[0].shape.slice(2);
    touch_windows(op.window, l.out[0], l.out_types[0].shape, l.in_types[0].shape, l.in[0]);
}
void fit(ConvGradWeightOp& op, Local& l) {
    op.groups = op.groups > 1 ? l.in[0].shape[1] / l.out_types[0].shape[1] : 1;
    read_windows(op.window, l.in[1], l.in_types[1].shape, l.in_types[0].shape, l.in[0]);
}
void fit(LocalConvOp& op, Local& l) { read_windows(op.window, l.out[0], l.out_types[0].shape, l.in_types[0].shape, l.in[0]); }
void fit(LocalConvGradInputOp& op, Local& l) { op.input = l.out[0].shape.slice(2); }
void fit(LocalConvGradWeightOp& op, Local& l) { read_windows(op.window, l.in[1], l.in_types[1].shape, l.in_types[0].shape, l.in[0]); }

void fit(MaxPoolOp& op, Local& l) { read_windows(op.window, l.out[0], l.out_types[0].shape, l.in_types[0].shape, l.in[0]); }
void fit(MaxPoolGradOp& op, Local& l) {
    op.input = l.out[0].shape.slice(2);
    touch_windows(op.window, l.out[0], l.out_types[0].shape, l.in_types[0].shape, l.in[0]);
    l.in[1] = l.in[0];
}

// Rows that windows reach past the end of the input: padding as far as it goes, which counts in the divisor, and overflow, which does not.
int64_t overflow_of(const Window& whole, int i, int64_t outputs_end, int64_t input_length) {
    const int64_t reach = (outputs_end - 1) * whole.stride[i] - whole.pad_lo[i] + whole.extent(i) - input_length;
    return std::max<int64_t>(0, reach - whole.pad_hi[i]);
}
// Of the rows past the end that the windows of this part reach, those beyond the padding of the whole.
void split_overflow(Window& w, Dims& overflow, const Window& whole, int i, int64_t outputs_end, int64_t input_length) {
    if (overflow.empty()) overflow = Dims::filled(w.rank(), 0);
    overflow[i] = std::min(w.pad_hi[i], overflow_of(whole, i, outputs_end, input_length));
    w.pad_hi[i] -= overflow[i];
}
void fit(AveragePoolOp& op, Local& l) {
    const Window whole = op.window;
    const Shape &x = l.in_types[0].shape, &y = l.out_types[0].shape;
    read_windows(op.window, l.out[0], y, x, l.in[0]);
    for (int i = 0; i < whole.rank(); ++i)
        if (l.out[0].shape[2 + i] != y[2 + i]) split_overflow(op.window, op.overflow, whole, i, l.out[0].end(2 + i), x[2 + i]);
}
void fit(AveragePoolGradOp& op, Local& l) {
    const Window whole = op.window;
    const Shape &x = l.out_types[0].shape, &y = l.in_types[0].shape;
    op.input = l.out[0].shape.slice(2);
    touch_windows(op.window, l.out[0], x, y, l.in[0]);
    // A part's padding stands for a neighbour's rows, which count; where padding does not count, the whole has none.
    if (l.out[0].shape.slice(2) != x.slice(2)) op.count_padding = true;
    for (int i = 0; i < whole.rank(); ++i)
        if (l.out[0].shape[2 + i] != x[2 + i]) split_overflow(op.window, op.overflow, whole, i, l.in[0].end(2 + i), x[2 + i]);
}

// --- Resampling: the kernels know where their parts lie ---

void fit(AdaptivePoolOp& op, Local& l) { op.output = l.out[0].shape.slice(2); }
void fit(AdaptivePoolGradOp& op, Local& l) { op.input = l.out[0].shape.slice(2); }

// The inputs [begin, end) that output o of a linear or nearest up-sampling reads.
std::pair<int64_t, int64_t> taps(Resample mode, bool align_corners, int64_t o, int64_t in, int64_t out) {
    if (mode == Resample::Nearest) return {o * in / out, o * in / out + 1};
    const double source = linear_source(o, in, out, align_corners);
    const int64_t begin = std::min(static_cast<int64_t>(source), in - 1);
    return {begin, std::min(begin + 2, in)};
}
void fit(UpsampleOp& op, Local& l) {
    op.output = l.out[0].shape.slice(2);
    for (int d = 2; d < l.out[0].shape.size(); ++d) {
        const int64_t in = l.in_types[0].shape[d], out = l.out_types[0].shape[d];
        if (l.out[0].shape[d] == 0) {
            l.in[0] = l.in[0].with(d, 0, 0);
            continue;
        }
        const int64_t begin = taps(op.mode, op.align_corners, l.out[0].begin(d), in, out).first;
        const int64_t end = taps(op.mode, op.align_corners, l.out[0].end(d) - 1, in, out).second;
        l.in[0] = l.in[0].with(d, begin, end);
    }
}
void fit(UpsampleGradOp& op, Local& l) {
    op.input = l.out[0].shape.slice(2);
    for (int d = 2; d < l.out[0].shape.size(); ++d) {
        const int64_t in = l.out_types[0].shape[d], out = l.in_types[0].shape[d];
        int64_t begin = out, end = 0;
        for (int64_t o = 0; o < out; ++o) {
            const auto [first, last] = taps(op.mode, op.align_corners, o, in, out);
            if (last <= l.out[0].begin(d) || first >= l.out[0].end(d)) continue;
            begin = std::min(begin, o);
            end = o + 1;
        }
        l.in[0] = begin < end ? l.in[0].with(d, begin, end) : l.in[0].with(d, 0, 0);
    }
}

// --- Rearranging ---

void fit(ConcatOp& op, Local& l) {
    int64_t start = 0;
    for (size_t i = 0; i < l.in.size(); ++i) {
        const int64_t length = l.in_types[i].shape[op.axis];
        const int64_t begin = std::clamp<int64_t>(l.out[0].begin(op.axis) - start, 0, length);
        l.in[i] = l.in[i].with(op.axis, begin, std::clamp(l.out[0].end(op.axis) - start, begin, length));
        start += length;
    }
}
// Dims that are not cut stay as they are: the op itself leaves out what it does not need.
bool is_cut(const Local& l, int d) { return l.out[0].shape[d] != l.out_types[0].shape[d]; }

void fit(SliceOp& op, Local& l) {
    for (int d = 0; d < op.start.size(); ++d) {
        if (!is_cut(l, d)) {
            l.in[0] = l.in[0].with(d, 0, l.in_types[0].shape[d]);
            continue;
        }
        l.in[0] = l.in[0].with(d, l.out[0].begin(d) + op.start[d], l.out[0].end(d) + op.start[d]);
        op.start[d] = 0;
    }
    op.size = l.out[0].shape;
}
void fit(PadOp& op, Local& l) {
    for (int d = 0; d < op.lo.size(); ++d) {
        const int64_t length = l.in_types[0].shape[d];
        if (!is_cut(l, d)) {
            l.in[0] = l.in[0].with(d, 0, length);
            continue;
        }
        const int64_t from = l.out[0].begin(d) - op.lo[d], to = l.out[0].end(d) - op.lo[d];
        const int64_t begin = std::clamp<int64_t>(from, 0, length), end = std::clamp(to, begin, length);
        l.in[0] = l.in[0].with(d, begin, end);
        op.lo[d] = begin == end ? to - from : begin - from;
        op.hi[d] = begin == end ? 0 : to - end;
    }
}
void fit(ReshapeOp& op, Local& l) { op.shape = l.out[0].shape; }
void fit(ExpandOp& op, Local& l) { op.shape = l.out[0].shape; }
void fit(SumToOp& op, Local& l) { op.shape = l.out[0].shape; }
void fit(PReluGradSlopeOp& op, Local& l) { op.slopes = l.out[0].shape[0]; }

template <class Other>
void fit(Other&, Local&) {}

}  // namespace

LocalOp localise(const Op& op, const std::vector<ValueType>& input_types, const std::vector<ValueType>& output_types,
                 std::vector<Box> inputs, const std::vector<Box>& outputs) {
    LocalOp result{op, std::move(inputs)};
    Local local{input_types, output_types, result.inputs, outputs};
    std::visit([&](auto& o) { fit(o, local); }, result.op);
    return result;
}

}  // namespace convoy
