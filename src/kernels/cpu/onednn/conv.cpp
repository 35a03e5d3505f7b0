// Convolutions by oneDNN: forward (with bias and ReLU in the same pass), input gradient (which is also the transposed convolution), weight
// gradient (with the bias's). Directly, in blocked and in channels-last layout, and by Winograd's method where the kernel is 3x3.
#include <array>

#include "base/error.h"
#include "kernels/cpu/implementation.h"
#include "kernels/cpu/onednn/common.h"
#include "kernels/cpu/onednn/implementations.h"

namespace convoy::cpu {

namespace {

using dnnl::algorithm;
using dnnl::memory;

enum class Direction { Forward, GradInput, GradWeight };

// A convolution found in a problem: which tensors of the problem are x, w, y (or their gradients), and what is fused to it.
struct ConvProblem {
    Direction direction;
    Window window;
    int64_t groups;
    int x, w, y;    // tensors of the problem
    int bias = -1;  // or its gradient
    const UnaryOp* activation = nullptr;
};

// Post-ops that oneDNN's convolution takes as an activation.
bool fusable(const UnaryOp& op) { return op.kind == Unary::Relu || op.kind == Unary::LeakyRelu; }

std::optional<ConvProblem> recognise(const Problem& problem) {
    const auto& first = problem.steps[0];
    ConvProblem conv{};
    int result = first.outputs[0];
    size_t next = 1;
    if (const auto* op = std::get_if<ConvOp>(&first.op)) {
        conv = {Direction::Forward, op->window, op->groups, first.inputs[0], first.inputs[1], result};
        if (next < problem.steps.size() && std::holds_alternative<BiasOp>(problem.steps[next].op)) {
            const auto& step = problem.steps[next++];
            if (step.inputs[0] != result || problem.tensors[static_cast<size_t>(step.inputs[1])].shape.size() != 1) return std::nullopt;
            conv.bias = step.inputs[1];
            result = step.outputs[0];
        }
        if (next < problem.steps.size()) {
            const auto* unary = std::get_if<UnaryOp>(&problem.steps[next].op);
            if (!unary || !fusable(*unary) || problem.steps[next].inputs[0] != result) return std::nullopt;
            conv.activation = unary;
            result = problem.steps[next++].outputs[0];
        }
        conv.y = result;
    } else if (const auto* dx = std::get_if<ConvGradInputOp>(&first.op)) {
        conv = {Direction::GradInput, dx->window, dx->groups, result, first.inputs[1], first.inputs[0]};
    } else if (const auto* dw = std::get_if<ConvGradWeightOp>(&first.op)) {
        conv = {Direction::GradWeight, dw->window, dw->groups, first.inputs[0], result, first.inputs[1]};
        if (next < problem.steps.size()) {
            const auto* bias = std::get_if<BiasGradOp>(&problem.steps[next].op);
            if (!bias || bias->axis != 1 || bias->rank != 1 || problem.steps[next].inputs[0] != conv.y) return std::nullopt;
            conv.bias = problem.steps[next++].outputs[0];
        }
    } else {
        return std::nullopt;
    }
    if (next != problem.steps.size()) return std::nullopt;
    for (const auto& t : problem.tensors)
        if (t.dtype != DType::f32) return std::nullopt;
    for (const auto* pad : {&conv.window.pad_lo, &conv.window.pad_hi})
        for (const int64_t p : *pad)
            if (p < 0) return std::nullopt;  // cropping is left to the reference
    return conv;
}

// How the activations lie, and by which method.
struct Variant {
    const char* name;
    algorithm method;
    Layout x, y;
};

std::vector<Variant> variants(const ConvProblem& conv, const Problem& problem, const CpuContext& context) {
    const int rank = conv.window.rank() + 2;
    const int64_t channels = problem.tensors[static_cast<size_t>(conv.x)].shape[1];
    const Layout blocked = Layout::blocked(rank, context.block), last = Layout::channels_last(rank);
    std::vector<Variant> list;
    const Layout x = channels < context.block && conv.direction != Direction::GradInput ? Layout::plain() : blocked;
    bool three = rank == 4 && conv.groups == 1;
    for (int i = 0; i < conv.window.rank(); ++i)
        three = three && conv.window.kernel[i] == 3 && conv.window.stride[i] == 1 && conv.window.dilation[i] == 1;
    if (three) list.push_back({"winograd", algorithm::convolution_winograd, x, blocked});
    list.push_back({"direct", algorithm::convolution_direct, x, blocked});
    list.push_back({"direct", algorithm::convolution_direct, last, last});
    return list;
}

// A primitive descriptor of one of the three directions.
struct Described {
    memory::desc x, w, y, scratchpad;
    std::string library_name;
    dnnl::primitive primitive;  // only when asked for
};

class ConvDescriber {
  public:
    ConvDescriber(const ConvProblem& conv, const Problem& problem) : conv_(conv) {
        const auto shape = [&](int t) { return problem.tensors[static_cast<size_t>(t)].shape; };
        x_ = shape(conv.x);
        y_ = shape(conv.y);
        w_ = shape(conv.w);
        grouped_ = w_;
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

    const Shape& grouped_weight() const { return grouped_; }

    // Throws dnnl::error when the library has no such primitive.
    Described describe(const Variant& v, bool make) const {
        const auto w = describe_any(grouped_);
        const auto x = cpu::describe(x_, v.x), y = cpu::describe(y_, v.y);
        const memory::desc bias = conv_.bias >= 0 ? memory::desc({y_[1]}, memory::data_type::f32, memory::format_tag::a) : memory::desc();
        const dnnl::convolution_forward::desc forward_desc(dnnl::prop_kind::forward_training, v.method, x, w,
                                                           conv_.direction == Direction::Forward ? bias : memory::desc(), y, stride_,
                                                           dilation_, lo_, hi_);
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

  private:
    const ConvProblem& conv_;
    Shape x_, y_, w_, grouped_;
    memory::dims stride_, dilation_, lo_, hi_;
};

// Operations per second and thread that the library's implementations reach, roughly: to weigh candidates against each other and against copies.
double rate(const std::string& library_name, const Variant& v, const ConvProblem& conv) {
    if (library_name.find("ref") != std::string::npos) return 0.5e9;
    if (library_name.find("gemm") != std::string::npos) return 30e9;
    if (v.method == algorithm::convolution_winograd) return 150e9;
    // In three dims the channels-last kernels win, in two the blocked ones.
    const bool last = v.y.inner.empty();
    return (conv.window.rank() == 3) == last ? 85e9 : 80e9;
}

// The tensor behind each operand, in the order of the problem: inputs, then outputs.
Layout operand_layout(int tensor, const ConvProblem& conv, const Variant& v, const Layout& weight) {
    if (tensor == conv.x) return v.x;
    if (tensor == conv.y) return v.y;
    if (tensor == conv.w) return weight;
    return Layout::plain();
}

// Grouped weights have a dim more inside the library, so they stay plain outside and are rearranged on the way.
struct GroupedWeights {
    int64_t bytes = 0;  // in the library's format
    bool copied = false;
};

GroupedWeights grouped_weights(const ConvProblem& conv, const ConvDescriber& describer, const memory::desc& w) {
    if (conv.groups == 1 || w == describe(describer.grouped_weight(), Layout::plain())) return {};
    return {(static_cast<int64_t>(w.get_size()) + 63) / 64 * 64, true};
}

// A convolution whose weights pass through the library's own format.
class RearrangedConvKernel : public Kernel {
  public:
    RearrangedConvKernel(std::unique_ptr<Kernel> before, std::unique_ptr<Kernel> conv, std::unique_ptr<Kernel> after)
        : before_(std::move(before)), conv_(std::move(conv)), after_(std::move(after)) {}
    void run(const StepContext& context) override {
        if (before_) before_->run(context);
        conv_->run(context);
        if (after_) after_->run(context);
    }

  private:
    std::unique_ptr<Kernel> before_, conv_, after_;
};

class OneDnnConv : public Implementation {
  public:
    std::string_view name() const override { return "onednn-conv"; }

    std::vector<Candidate> candidates(const Problem& problem, const CpuContext& context) const override {
        const auto conv = recognise(problem);
        if (!conv) return {};
        use_threads(context.threads);
        const ConvDescriber describer(*conv, problem);
        std::vector<Candidate> list;
        for (const Variant& v : variants(*conv, problem, context)) {
            Described d;
            try {
                d = describer.describe(v, false);
            } catch (const dnnl::error&) {
                continue;
            }
            Layout weight;
            int64_t workspace = (static_cast<int64_t>(d.scratchpad.get_size()) + 63) / 64 * 64;
            if (conv->groups == 1) {
                const auto known = layout_of(d.w, problem.tensors[static_cast<size_t>(conv->w)].shape);
                if (!known) continue;
                weight = *known;
            } else {
                workspace += grouped_weights(*conv, describer, d.w).bytes;
            }
            Candidate candidate{.algorithm = fmt::format("{}:{}:{}", name(), v.name, v.y.inner.empty() ? "last" : "blocked"),
                                .workspace_bytes = workspace};
            for (int t = 0; t < problem.inputs + problem.outputs; ++t)
                (t < problem.inputs ? candidate.inputs : candidate.outputs).push_back(operand_layout(t, *conv, v, weight));
            candidate.seconds = work_of(problem) / rate(d.library_name, v, *conv) / context.threads;
            list.push_back(std::move(candidate));
        }
        return list;
    }

    std::unique_ptr<Kernel> prepare(const KernelRequest& request, const CpuContext& context) const override {
        const auto conv = recognise(request.problem);
        CONVOY_CHECK(conv, "{} is no convolution", text_of(request.problem));
        use_threads(context.threads);
        const ConvDescriber describer(*conv, request.problem);
        for (const Variant& v : variants(*conv, request.problem, context)) {
            if (request.algorithm != fmt::format("{}:{}:{}", name(), v.name, v.y.inner.empty() ? "last" : "blocked")) continue;
            return bind(*conv, describer, describer.describe(v, true), request, context);
        }
        CONVOY_CHECK(false, "no convolution {}", request.algorithm);
    }

  private:
    static std::unique_ptr<Kernel> bind(const ConvProblem& conv, const ConvDescriber& describer, const Described& d,
                                        const KernelRequest& request, const CpuContext& context) {
        const auto data = [&](int t) {
            return t < request.problem.inputs ? request.inputs[static_cast<size_t>(t)].data
                                              : request.outputs[static_cast<size_t>(t - request.problem.inputs)].data;
        };
        auto* scratch = static_cast<std::byte*>(request.workspace);
        const GroupedWeights grouped = grouped_weights(conv, describer, d.w);
        void* weights = data(conv.w);
        std::unique_ptr<Kernel> before, after;
        if (grouped.copied) {
            const memory plain(describe(describer.grouped_weight(), Layout::plain()), engine(), weights);
            weights = scratch;
            scratch += grouped.bytes;
            const memory own(d.w, engine(), weights);
            const bool out = conv.direction == Direction::GradWeight;
            const memory &from = out ? own : plain, &to = out ? plain : own;
            auto reorder = std::make_unique<OneDnnKernel>(dnnl::reorder(dnnl::reorder::primitive_desc(from, to)),
                                                          std::vector<std::pair<int, memory>>{{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}},
                                                          context.threads);
            (out ? after : before) = std::move(reorder);
        }
        const memory x(d.x, engine(), data(conv.x)), w(d.w, engine(), weights), y(d.y, engine(), data(conv.y));
        std::vector<std::pair<int, memory>> arguments;
        switch (conv.direction) {
            case Direction::Forward: arguments = {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DST, y}}; break;
            case Direction::GradInput: arguments = {{DNNL_ARG_DIFF_SRC, x}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DIFF_DST, y}}; break;
            case Direction::GradWeight: arguments = {{DNNL_ARG_SRC, x}, {DNNL_ARG_DIFF_WEIGHTS, w}, {DNNL_ARG_DIFF_DST, y}}; break;
        }
        if (conv.bias >= 0) {
            const memory bias({{y.get_desc().dims()[1]}, memory::data_type::f32, memory::format_tag::a}, engine(), data(conv.bias));
            arguments.emplace_back(conv.direction == Direction::Forward ? DNNL_ARG_BIAS : DNNL_ARG_DIFF_BIAS, bias);
        }
        arguments.emplace_back(DNNL_ARG_SCRATCHPAD, memory(d.scratchpad, engine(), scratch));
        auto kernel = std::make_unique<OneDnnKernel>(d.primitive, arguments, context.threads);
        if (!grouped.copied) return kernel;
        return std::make_unique<RearrangedConvKernel>(std::move(before), std::move(kernel), std::move(after));
    }
};

}  // namespace

const Implementation& onednn_conv() {
    static const OneDnnConv instance;
    return instance;
}

}  // namespace convoy::cpu
