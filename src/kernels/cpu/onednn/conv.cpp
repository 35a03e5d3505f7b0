// Convolutions by oneDNN: forward (with bias and ReLU in the same pass), input gradient (which is also the transposed convolution), weight
// gradient (with the bias's). Directly, in blocked and in channels-last layout; by Winograd's method where the kernel is 3x3; by matrix products in
// plain layout.
#include <algorithm>

#include "base/error.h"
#include "kernels/cpu/conv/algorithm.h"
#include "kernels/cpu/onednn/common.h"
#include "kernels/cpu/onednn/conv_problem.h"

namespace convoy::cpu {

namespace {

using dnnl::algorithm;
using dnnl::memory;

enum class Method : uint8_t { Winograd, Direct, Gemm };

std::vector<Variant> variants(Method method, const ConvView& view, const CpuContext& context) {
    const int rank = view.rank + 2;
    const Layout blocked = Layout::blocked(rank, context.block), last = Layout::channels_last(rank), plain = Layout::plain();
    const Layout x = view.c < context.block && view.direction() != Direction::GradInput ? plain : blocked;
    switch (method) {
        case Method::Winograd: return {{"blocked", algorithm::convolution_winograd, x, blocked}};
        case Method::Direct:
            return {{"blocked", algorithm::convolution_direct, x, blocked}, {"last", algorithm::convolution_direct, last, last}};
        default: return {{"plain", algorithm::convolution_direct, plain, plain}};
    }
}

// Whether plain and channels-last are the same for a tensor.
bool lies_alike(const Shape& shape) { return shape[1] == 1 || numel(shape.slice(2)) == 1; }

std::string refusal(Method method, const ConvView& v) {
    if (auto reason = library_refusal(v); !reason.empty()) return reason;
    // oneDNN keeps primitives by what they are asked for, and would hand out the one it made for channels-last, which needs other memory.
    if (method == Method::Gemm && lies_alike(v.x) && lies_alike(v.y)) return "plain and channels-last are the same here";
    if (method != Method::Winograd) return "";
    if (v.rank != 2 || v.kernel != Three{1, 3, 3}) return "the window is not 3x3";
    if (!v.all_ones(v.stride)) return "the stride is not 1";
    if (!v.all_ones(v.dilation)) return "the window is dilated";
    if (v.groups != 1) return "there are groups";
    return "";
}

// Multiplications and additions; Winograd's by the products of F(4x4, 3x3).
double operations(Method method, const ConvView& v) {
    if (method != Method::Winograd) return v.operations();
    const Three& result = v.direction() == Direction::GradInput ? v.in : v.out;
    return 2.0 * 36 * static_cast<double>(v.n * ((result[1] + 3) / 4) * ((result[2] + 3) / 4)) * static_cast<double>(v.c * v.f);
}

// Operations per second and thread that the library's implementations reach, roughly: to weigh candidates against each other and against copies.
double rate(const std::string& library_name, const Variant& v, const ConvProblem& conv) {
    if (library_name.find("gemm") != std::string::npos) return 30e9;
    if (v.method == algorithm::convolution_winograd) return 150e9;
    const bool last = v.y.inner.empty();
    if (conv.window.rank() == 3) return conv.direction != Direction::GradWeight ? 115e9 : last ? 105e9 : 95e9;
    return last ? 80e9 : 85e9;
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

template <Method kMethod>
ConvOffers offers(const ConvView& view, const CpuContext& context) {
    if (auto reason = refusal(kMethod, view); !reason.empty()) return ConvOffers::refuse(std::move(reason));
    const ConvDescriber describer(view);
    ConvOffers result;
    for (const Variant& v : variants(kMethod, view, context)) {
        Described d;
        try {
            d = describer.describe(v, false);
        } catch (const dnnl::error& error) {
            result.refusal = fmt::format("oneDNN: {}", error.message);
            continue;
        }
        if (d.library_name.find("ref") != std::string::npos) {
            result.refusal = "oneDNN has only its reference code for it";
            continue;
        }
        if (kMethod == Method::Gemm && d.library_name.find("gemm") == std::string::npos) {
            result.refusal = "oneDNN does it without matrix products";
            continue;
        }
        Layout weight;
        int64_t workspace = (static_cast<int64_t>(d.scratchpad.get_size()) + 63) / 64 * 64;
        if (view.groups == 1) {
            const auto known = layout_of(d.w, view.w);
            if (!known) {
                result.refusal = "oneDNN wants weights in a format of its own";
                continue;
            }
            weight = *known;
        } else {
            workspace += grouped_weights(view.conv, describer, d.w).bytes;
        }
        constexpr double kCall = 1e-6;
        const double part =
            view.rank == 3 ? view.used_part() : 1;  // in small volumes much falls on padding, which direct kernels leave out
        result.list.push_back({.variant = v.name,
                               .x = v.x,
                               .w = weight,
                               .y = v.y,
                               .workspace_bytes = workspace,
                               .operations = operations(kMethod, view),
                               .seconds = kCall + part * view.operations() / rate(d.library_name, v, view.conv) / context.threads});
    }
    return result;
}

std::unique_ptr<Kernel> bind(const ConvProblem& conv, const ConvDescriber& describer, const Described& d, const KernelRequest& request,
                             const CpuContext& context) {
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
        auto reorder =
            std::make_unique<OneDnnKernel>(dnnl::reorder(dnnl::reorder::primitive_desc(from, to)),
                                           std::vector<std::pair<int, memory>>{{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}, context.threads);
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

template <Method kMethod>
std::unique_ptr<Kernel> prepare(const ConvCall& call) {
    const ConvDescriber describer(call.view);
    for (const Variant& v : variants(kMethod, call.view, call.context))
        if (call.variant == v.name) return bind(call.view.conv, describer, describer.describe(v, true), call.request, call.context);
    CONVOY_CHECK(false, "oneDNN has no variant {}", call.variant);
}

}  // namespace

const ConvAlgorithm& onednn_winograd() {
    static const ConvAlgorithm algorithm{"onednn-winograd", Numerics::Fast, true, offers<Method::Winograd>, prepare<Method::Winograd>};
    return algorithm;
}

const ConvAlgorithm& onednn_direct() {
    static const ConvAlgorithm algorithm{"onednn-direct", Numerics::Exact, true, offers<Method::Direct>, prepare<Method::Direct>};
    return algorithm;
}

const ConvAlgorithm& onednn_gemm() {
    static const ConvAlgorithm algorithm{"onednn-gemm", Numerics::Exact, true, offers<Method::Gemm>, prepare<Method::Gemm>};
    return algorithm;
}

}  // namespace convoy::cpu
