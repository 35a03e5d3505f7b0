// Convolutions by oneDNN: forward (with bias and ReLU in the same pass), input gradient (which is also the transposed convolution), weight
// gradient (with the bias's). Directly, in blocked and in channels-last layout, and by Winograd's method where the kernel is 3x3.
#include <algorithm>

#include "base/error.h"
#include "kernels/cpu/implementation.h"
#include "kernels/cpu/onednn/common.h"
#include "kernels/cpu/onednn/conv_problem.h"
#include "kernels/cpu/onednn/implementations.h"

namespace convoy::cpu {

namespace {

using dnnl::algorithm;
using dnnl::memory;

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

// Operations per second and thread that the library's implementations reach, roughly: to weigh candidates against each other and against copies.
double rate(const std::string& library_name, const Variant& v, const ConvProblem& conv) {
    if (library_name.find("ref") != std::string::npos) return 0.5e9;
    if (library_name.find("gemm") != std::string::npos) return 30e9;
    if (v.method == algorithm::convolution_winograd) return 150e9;
    const bool last = v.y.inner.empty();
    if (conv.window.rank() == 3) return conv.direction != Direction::GradWeight ? 115e9 : last ? 105e9 : 95e9;
    return last ? 80e9 : 85e9;
}

// The part of a window's elements, over all outputs, that lies in the input: in small volumes much of the work falls on padding, which direct kernels
// leave out.
double used_part(const ConvProblem& conv, const Problem& problem) {
    const Shape &x = problem.tensors[static_cast<size_t>(conv.x)].shape, &y = problem.tensors[static_cast<size_t>(conv.y)].shape;
    double part = 1;
    for (int i = 0; i < conv.window.rank(); ++i) {
        int64_t used = 0;
        for (int64_t o = 0; o < y[i + 2]; ++o)
            for (int64_t k = 0; k < conv.window.kernel[i]; ++k) {
                const int64_t at = o * conv.window.stride[i] + k * conv.window.dilation[i] - conv.window.pad_lo[i];
                used += at >= 0 && at < x[i + 2];
            }
        part *= static_cast<double>(used) / static_cast<double>(std::max<int64_t>(1, y[i + 2] * conv.window.kernel[i]));
    }
    return part;
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
                                .workspace_bytes = workspace,
                                .numerics = v.method == algorithm::convolution_winograd ? Numerics::Fast : Numerics::Exact};
            for (int t = 0; t < problem.inputs + problem.outputs; ++t)
                (t < problem.inputs ? candidate.inputs : candidate.outputs).push_back(operand_layout(t, *conv, v, weight));
            constexpr double kCall = 1e-6;
            const double part = conv->window.rank() == 3 ? used_part(*conv, problem) : 1;
            candidate.seconds = kCall + part * work_of(problem) / rate(d.library_name, v, *conv) / context.threads;
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
        auto arguments = conv_arguments(conv.direction, x, w, y);
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
