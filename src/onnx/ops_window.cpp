// Convolutions and pooling.
#include <algorithm>

#include "onnx/context.h"

namespace convoy::onnx {

namespace {

struct Padding {
    Dims lo, hi;
};

// Of a window over `in`: as `pads` says, or as auto_pad makes it.
Padding padding_of(NodeContext& c, const Window& w, const Dims& in) {
    const int rank = in.size();
    const std::string automatic = c.text("auto_pad", "NOTSET");
    const Dims both = c.window_setting("pads", 2 * rank, 0, 0);
    if (automatic == "NOTSET") return {both.slice(0, rank), both.slice(rank)};
    Padding padding{Dims::filled(rank, 0), Dims::filled(rank, 0)};
    if (automatic == "VALID") return padding;
    if (automatic != "SAME_UPPER" && automatic != "SAME_LOWER") c.refuse(fmt::format("auto_pad is \"{}\"", automatic));
    for (int i = 0; i < rank; ++i) {
        const int64_t out = (in[i] + w.stride[i] - 1) / w.stride[i];
        const int64_t total = std::max<int64_t>(0, (out - 1) * w.stride[i] + w.extent(i) - in[i]);
        padding.lo[i] = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
        padding.hi[i] = total - padding.lo[i];
    }
    return padding;
}

Dims spatial(NodeContext& c, size_t input) {
    const Shape x = c.shape(input);
    if (x.size() < 3 || x.size() > 5) c.refuse(fmt::format("its input is {}, expected N x C and one to three spatial dims", to_string(x)));
    return x.slice(2);
}

Window window_of(NodeContext& c, const Dims& in, const Dims& kernel) {
    const int rank = in.size();
    Window w;
    w.kernel = kernel.empty() ? c.window_setting("kernel_shape", rank, 1, 1) : kernel;
    if (!kernel.empty() && c.has_attribute("kernel_shape") && c.window_setting("kernel_shape", rank, 1, 1) != kernel)
        c.refuse(fmt::format("kernel_shape does not fit a weight of {}", to_string(kernel)));
    w.stride = c.window_setting("strides", rank, 1, 1);
    w.dilation = c.window_setting("dilations", rank, 1, 1);
    for (int i = 0; i < rank; ++i)
        if (w.extent(i) > int64_t{1} << 31) c.refuse("its window is too large");
    const Padding padding = padding_of(c, w, in);
    w.pad_lo = padding.lo;
    w.pad_hi = padding.hi;
    return w;
}

Dims kernel_of(NodeContext& c, int rank) {
    const Shape w = c.shape(1);
    if (w.size() != rank + 2) c.refuse(fmt::format("its weight is {}, expected {} dims", to_string(w), rank + 2));
    for (const int64_t size : w)
        if (size < 1 || size > int64_t{1} << 31) c.refuse(fmt::format("its weight is {}", to_string(w)));
    return w.slice(2);
}

ValueId with_bias(NodeContext& c, ValueId y) { return c.has(2) ? c.add(BiasOp{1}, {y, c.value(2)}) : y; }

void conv(NodeContext& c) {
    const Dims in = spatial(c, 0);
    const Window w = window_of(c, in, kernel_of(c, in.size()));
    c.set(0, with_bias(c, c.add(ConvOp{w, c.integer("group", 1)}, {c.value(0), c.value(1)})));
}

// The result as large as its window can reach, then cut or padded: takes any padding, at the price of a copy.
ValueId roomy_transpose(NodeContext& c, Window w, int64_t groups, const Dims& in, const Dims& out) {
    const Dims lo = w.pad_lo;
    w.pad_lo = w.pad_hi = Dims::filled(in.size(), 0);
    Dims full, cut_lo{0, 0}, cut_hi{0, 0};
    for (int i = 0; i < in.size(); ++i) {
        full.push_back((in[i] - 1) * w.stride[i] + w.extent(i));
        cut_lo.push_back(-lo[i]);
        cut_hi.push_back(out[i] + lo[i] - full[i]);
    }
    return c.add(PadOp{cut_lo, cut_hi, 0}, {c.add(ConvGradInputOp{w, groups, full}, {c.value(0), c.value(1)})});
}

void conv_transpose(NodeContext& c) {
    const Dims in = spatial(c, 0);
    const int rank = in.size();
    const auto output_shape = c.integers("output_shape");
    const Dims extra = c.window_setting("output_padding", rank, 0, 0);
    const std::string automatic = c.text("auto_pad", "NOTSET");
    Window w = window_of(c, in, kernel_of(c, rank));
    const int64_t groups = c.integer("group", 1);
    Dims out;
    const bool same = automatic == "SAME_UPPER" || automatic == "SAME_LOWER";
    if (!output_shape.empty() && static_cast<int>(output_shape.size()) != rank) c.refuse("output_shape has not one entry per spatial dim");
    for (const int64_t size : output_shape)
        if (size < 1 || size > int64_t{1} << 31) c.refuse(fmt::format("output_shape holds {}", size));
    for (int i = 0; i < rank; ++i) {
        const int64_t reach = (in[i] - 1) * w.stride[i] + w.extent(i) + extra[i];
        if (output_shape.empty() && !same) {
            out.push_back(reach - w.pad_lo[i] - w.pad_hi[i]);
        } else {
            out.push_back(output_shape.empty() ? in[i] * w.stride[i] : output_shape[static_cast<size_t>(i)]);
            const int64_t total = std::max<int64_t>(0, reach - out[i]);
            w.pad_lo[i] = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
            w.pad_hi[i] = total - w.pad_lo[i];
        }
        if (out[i] <= 0 || out[i] > int64_t{1} << 31) c.refuse(fmt::format("its result would be {} long", out[i]));
    }
    const bool fits = w.output(out) == in;
    const ValueId y = fits ? c.add(ConvGradInputOp{w, groups, out}, {c.value(0), c.value(1)}) : roomy_transpose(c, w, groups, in, out);
    c.set(0, with_bias(c, y));
}

// How far the last window of ceil mode reaches past the padded input; it must begin inside the input or the padding before it.
Dims overflow_of(NodeContext& c, const Window& w, const Dims& in) {
    Dims overflow = Dims::filled(in.size(), 0);
    if (c.integer("ceil_mode", 0) == 0) return overflow;
    for (int i = 0; i < in.size(); ++i) {
        const int64_t padded = in[i] + w.pad_lo[i] + w.pad_hi[i], room = padded - w.extent(i) + w.stride[i] - 1;
        int64_t out = room < 0 ? 0 : room / w.stride[i] + 1;
        if ((out - 1) * w.stride[i] >= in[i] + w.pad_lo[i]) --out;
        if (out <= 0) c.refuse(fmt::format("a window of {} does not fit into {}", to_string(w.kernel), to_string(in)));
        overflow[i] = std::max<int64_t>(0, (out - 1) * w.stride[i] + w.extent(i) - padded);
    }
    return overflow;
}

void max_pool(NodeContext& c) {
    const Dims in = spatial(c, 0);
    Window w = window_of(c, in, {});
    const Dims overflow = overflow_of(c, w, in);
    for (int i = 0; i < in.size(); ++i) w.pad_hi[i] += overflow[i];  // padding never is the maximum
    const bool columns_first = c.integer("storage_order", 0) == 1;
    const auto made = c.add_all(MaxPoolOp{w}, {c.value(0)});
    c.set(0, made[0]);
    if (c.wants(1)) c.set(1, c.add(MaxIndexOp{w, in, columns_first}, {made[1]}));
}

void average_pool(NodeContext& c) {
    const Dims in = spatial(c, 0);
    const Window w = window_of(c, in, {});
    if (w.dilation != Dims::filled(in.size(), 1)) c.refuse("dilations are not supported");
    const Dims overflow = overflow_of(c, w, in);
    c.set(0, c.add(AveragePoolOp{w, c.integer("count_include_pad", 0) != 0, overflow}, {c.value(0)}));
}

void global_average(NodeContext& c) { c.set(0, c.add(AdaptivePoolOp{Dims::filled(spatial(c, 0).size(), 1)}, {c.value(0)})); }
void global_max(NodeContext& c) { c.set(0, c.add_all(MaxPoolOp{Window::of(spatial(c, 0))}, {c.value(0)})[0]); }

}  // namespace

std::span<const OpEntry> window_ops() {
    static constexpr OpEntry entries[] = {{"Conv", conv},
                                          {"ConvTranspose", conv_transpose},
                                          {"MaxPool", max_pool},
                                          {"AveragePool", average_pool},
                                          {"GlobalAveragePool", global_average},
                                          {"GlobalMaxPool", global_max}};
    return entries;
}

}  // namespace convoy::onnx
