#include "model/op.h"

#include <array>

#include "base/error.h"

namespace convoy {

namespace {

// In the order of the variant.
constexpr std::array<std::string_view, std::variant_size_v<Op>> kNames{"conv",
                                                                       "conv_grad_input",
                                                                       "conv_grad_weight",
                                                                       "linear",
                                                                       "linear_grad_input",
                                                                       "linear_grad_weight",
                                                                       "local_conv",
                                                                       "local_conv_grad_input",
                                                                       "local_conv_grad_weight",
                                                                       "bias",
                                                                       "bias_grad",
                                                                       "max_pool",
                                                                       "max_pool_grad",
                                                                       "max_index",
                                                                       "average_pool",
                                                                       "average_pool_grad",
                                                                       "adaptive_pool",
                                                                       "adaptive_pool_grad",
                                                                       "upsample",
                                                                       "upsample_grad",
                                                                       "batch_stats",
                                                                       "running_stats",
                                                                       "running_update",
                                                                       "batch_normalize",
                                                                       "batch_norm_grad_sums",
                                                                       "batch_norm_grad_input",
                                                                       "batch_norm_fixed_grad_input",
                                                                       "cell_stats",
                                                                       "cell_normalize",
                                                                       "cell_norm_grad_affine",
                                                                       "cell_norm_grad_sums",
                                                                       "cell_norm_grad_input",
                                                                       "lrn",
                                                                       "lrn_grad",
                                                                       "unary",
                                                                       "unary_grad",
                                                                       "pointwise",
                                                                       "pointwise_grad",
                                                                       "prelu",
                                                                       "prelu_grad_input",
                                                                       "prelu_grad_slope",
                                                                       "softmax",
                                                                       "softmax_grad",
                                                                       "log_softmax",
                                                                       "log_softmax_grad",
                                                                       "dropout",
                                                                       "add",
                                                                       "mul",
                                                                       "scale",
                                                                       "expand",
                                                                       "sum_to",
                                                                       "concat",
                                                                       "slice",
                                                                       "pad",
                                                                       "reshape",
                                                                       "transpose",
                                                                       "cross_entropy",
                                                                       "cross_entropy_grad",
                                                                       "nll",
                                                                       "nll_grad",
                                                                       "target_weight",
                                                                       "error_loss",
                                                                       "error_loss_grad",
                                                                       "correct",
                                                                       "squared_norm",
                                                                       "clip_scale",
                                                                       "update",
                                                                       "lamb_direction",
                                                                       "lamb_apply",
                                                                       "pack",
                                                                       "unpack",
                                                                       "merge_stats"};

// "3" for 3x3x3, "3x5" otherwise.
std::string brief(const Dims& dims) {
    for (const int64_t v : dims)
        if (v != dims[0]) return to_string(dims);
    return fmt::format("{}", dims.empty() ? 0 : dims[0]);
}

bool all(const Dims& dims, int64_t value) {
    for (const int64_t v : dims)
        if (v != value) return false;
    return true;
}

std::string text_of(const Window& w) {
    std::string text = to_string(w.kernel);
    if (!all(w.stride, 1)) text += " /" + brief(w.stride);
    if (!all(w.dilation, 1)) text += " dilation " + brief(w.dilation);
    if (w.pad_lo == w.pad_hi) {
        if (!all(w.pad_lo, 0)) text += " pad " + brief(w.pad_lo);
    } else {
        text += fmt::format(" pad {}..{}", brief(w.pad_lo), brief(w.pad_hi));
    }
    return text;
}

template <class T>
concept HasWindow = requires(const T& op) {
    op.window;
};
template <class T>
concept HasGroups = requires(const T& op) {
    op.groups;
};

}  // namespace

bool grad_reads_output(Unary kind) {
    return kind == Unary::Relu || kind == Unary::Relu6 || kind == Unary::LeakyRelu || kind == Unary::Sigmoid || kind == Unary::Tanh;
}

std::string_view name_of(Unary kind) {
    switch (kind) {
        case Unary::Relu: return "relu";
        case Unary::Relu6: return "relu6";
        case Unary::LeakyRelu: return "leaky_relu";
        case Unary::Sigmoid: return "sigmoid";
        case Unary::Tanh: return "tanh";
        case Unary::Gelu: return "gelu";
        case Unary::GeluTanh: return "gelu_tanh";
        case Unary::Silu: return "silu";
    }
    return "";
}

std::string_view name_of(Pointwise kind) {
    constexpr std::array<std::string_view, 31> names{"elu",    "softplus",   "softsign", "hard_sigmoid", "hard_swish", "thresholded_relu",
                                                     "shrink", "clip",       "shift",    "power",        "exp",        "log",
                                                     "sqrt",   "reciprocal", "abs",      "erf",          "sin",        "cos",
                                                     "tan",    "asin",       "acos",     "atan",         "sinh",       "cosh",
                                                     "asinh",  "acosh",      "atanh",    "sign",         "floor",      "ceil",
                                                     "round"};
    return names[static_cast<size_t>(kind)];
}

std::string_view name_of(Rule rule) {
    constexpr std::array<std::string_view, 9> names{"sgd", "momentum", "nesterov", "adagrad", "rmsprop", "adam", "adamw", "lars", "lamb"};
    return names[static_cast<size_t>(rule)];
}

std::string_view name_of(Element element) {
    constexpr std::array<std::string_view, 4> names{"real", "precise", "index", "byte"};
    return names[static_cast<size_t>(element)];
}

int slots_of(Rule rule) {
    switch (rule) {
        case Rule::Sgd: return 0;
        case Rule::Momentum:
        case Rule::Nesterov:
        case Rule::AdaGrad:
        case Rule::Lars: return 1;
        case Rule::RmsProp:
        case Rule::Adam:
        case Rule::AdamW:
        case Rule::Lamb: return 2;
    }
    return 0;
}

std::string_view name_of(const Op& op) { return kNames[op.index()]; }

std::string text_of(const Op& op) {
    return std::visit(
        [&](const auto& o) -> std::string {
            using T = std::decay_t<decltype(o)>;
            if constexpr (std::is_same_v<T, UnaryOp>) return std::string(name_of(o.kind));
            if constexpr (std::is_same_v<T, UnaryGradOp>) return fmt::format("{}_grad", name_of(o.kind));
            if constexpr (std::is_same_v<T, PointwiseOp>) return std::string(name_of(o.kind));
            if constexpr (std::is_same_v<T, PointwiseGradOp>) return fmt::format("{}_grad", name_of(o.kind));
            if constexpr (std::is_same_v<T, UpdateOp>) return fmt::format("update {}", name_of(o.rule.rule));
            std::string text(name_of(op));
            if constexpr (HasWindow<T>) text += " " + text_of(o.window);
            if constexpr (HasGroups<T>) {
                if (o.groups != 1) text += fmt::format(" groups {}", o.groups);
            }
            return text;
        },
        op);
}

}  // namespace convoy
