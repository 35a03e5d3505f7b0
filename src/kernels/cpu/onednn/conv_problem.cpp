#include "kernels/cpu/onednn/conv_problem.h"

namespace convoy::cpu {

using dnnl::algorithm;
using dnnl::memory;

std::string library_refusal(const ConvView& v) {
    for (const auto* pad : {&v.conv.window.pad_lo, &v.conv.window.pad_hi})
        for (const int64_t p : *pad)
            if (p < 0) return "the input is cropped";
    return "";
}

ConvDescriber::ConvDescriber(const ConvProblem& conv, const Shapes& shapes)
    : conv_(conv), x_(shapes.x), y_(shapes.y), w_(shapes.w), grouped_(shapes.w) {
    if (conv.groups > 1) grouped_ = join({conv.groups, w_[0] / conv.groups}, w_.slice(1));
    stride_ = to_dims(conv.window.stride);
    lo_ = to_dims(conv.window.pad_lo);
    hi_ = to_dims(conv.window.pad_hi);
    for (int i = 0; i < conv.window.rank(); ++i) {
        dilation_.push_back(conv.window.dilation[i] - 1);
        // The library's output size must be ours; rows past the last window count as negative padding, which it takes.
        const int64_t covered = (y_[i + 2] - 1) * conv.window.stride[i] + conv.window.extent(i) - conv.window.pad_lo[i] - x_[i + 2];
        hi_[static_cast<size_t>(i)] = covered;
    }
}

Described ConvDescriber::describe(const Variant& v, bool make) const {
    // oneDNN 2.6.3 offers this one and computes it wrongly.
    if (v.method == algorithm::convolution_winograd && conv_.direction == Direction::GradInput && lo_[0] != hi_[0])
        throw dnnl::error(dnnl_unimplemented, "Winograd's input gradient with different padding above and below");
    const auto w = describe_any(grouped_);
    const auto x = cpu::describe(x_, v.x), y = cpu::describe(y_, v.y);
    const memory::desc bias = conv_.bias >= 0 ? memory::desc({y_[1]}, memory::data_type::f32, memory::format_tag::a) : memory::desc();
    const dnnl::convolution_forward::desc forward_desc(dnnl::prop_kind::forward_training, v.method, x, w,
                                                       conv_.direction == Direction::Forward ? bias : memory::desc(), y, stride_, dilation_,
                                                       lo_, hi_);
    auto attributes = scratchpad_from_caller();
    if (conv_.activation) {
        dnnl::post_ops after;
        after.append_eltwise(1.0f, algorithm::eltwise_relu,
                             static_cast<float>(conv_.activation->kind == Unary::LeakyRelu ? conv_.activation->alpha : 0), 0.0f);
        attributes.set_post_ops(after);
    }
    const dnnl::convolution_forward::primitive_desc forward(forward_desc, attributes, engine());
    Described d;
    const auto fill = [&](const auto& pd) {
        d.scratchpad = pd.scratchpad_desc();
        d.library_name = pd.impl_info_str();
    };
    if (conv_.direction == Direction::Forward) {
        fill(forward);
        d.x = forward.src_desc();
        d.w = forward.weights_desc();
        d.y = forward.dst_desc();
        if (make) d.primitive = dnnl::convolution_forward(forward);
    } else if (conv_.direction == Direction::GradInput) {
        const dnnl::convolution_backward_data::primitive_desc pd({v.method, x, w, y, stride_, dilation_, lo_, hi_},
                                                                 scratchpad_from_caller(), engine(), forward);
        fill(pd);
        d.x = pd.diff_src_desc();
        d.w = pd.weights_desc();
        d.y = pd.diff_dst_desc();
        if (make) d.primitive = dnnl::convolution_backward_data(pd);
    } else {
        const dnnl::convolution_backward_weights::primitive_desc pd({v.method, x, w, bias, y, stride_, dilation_, lo_, hi_},
                                                                    scratchpad_from_caller(), engine(), forward);
        fill(pd);
        d.x = pd.src_desc();
        d.w = pd.diff_weights_desc();
        d.y = pd.diff_dst_desc();
        if (make) d.primitive = dnnl::convolution_backward_weights(pd);
    }
    return d;
}

std::vector<std::pair<int, memory>> conv_arguments(Direction direction, const memory& x, const memory& w, const memory& y) {
    switch (direction) {
        case Direction::Forward: return {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DST, y}};
        case Direction::GradInput: return {{DNNL_ARG_DIFF_SRC, x}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DIFF_DST, y}};
        default: return {{DNNL_ARG_SRC, x}, {DNNL_ARG_DIFF_WEIGHTS, w}, {DNNL_ARG_DIFF_DST, y}};
    }
}

}  // namespace convoy::cpu
