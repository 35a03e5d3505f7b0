// Convolutions: by cuDNN, with a bias and a rectifier in the same pass where it can, or else after it; directly where the library has nothing.
#include <algorithm>

#include "base/error.h"
#include "kernels/cuda/bias.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/direct_conv.h"
#include "kernels/cuda/family.h"
#include "kernels/cuda/tune.h"
#include "kernels/cuda/views.h"

namespace convoy::cuda {

namespace {

// --- What is offered ------------------------------------------------------------------------------------------------------------

std::optional<ConvProblem> recognised(const Problem& problem) {
    const auto conv = conv_problem(problem);
    if (!conv || (conv->direction == Direction::GradWeight && conv->bias != kNoTensor)) return std::nullopt;
    if (conv->activation && !can_follow_bias(*conv->activation)) return std::nullopt;
    return conv;
}

bool for_library(const Problem& problem, const ConvProblem& conv) {
    if (problem.compute == DType::f64) return false;
    for (const auto* pad : {&conv.window.pad_lo, &conv.window.pad_hi})
        for (const int64_t p : *pad)
            if (p < 0) return false;  // it cannot crop
    return std::none_of(problem.tensors.begin(), problem.tensors.end(), [](const TensorDesc& t) { return numel(t.shape) == 0; });
}

// Tensor cores work along the channels.
Layout library_layout(DType compute, int rank) {
    return compute == DType::bf16 || compute == DType::tf32 ? Layout::channels_last(rank) : Layout::plain();
}

int64_t workspace_for(const Problem& problem) {
    constexpr int64_t kLeast = int64_t{16} << 20, kMost = int64_t{256} << 20;
    int64_t bytes = 0;
    for (const TensorDesc& t : problem.tensors) bytes += numel(t.shape) * size_of(t.dtype);
    return std::clamp(2 * bytes, kLeast, kMost);
}

bool accepts(const Problem& p) { return recognised(p).has_value(); }

std::vector<Candidate> candidates(const Problem& p) {
    const auto conv = *recognised(p);
    const int rank = conv.window.rank() + 2;
    std::vector<Candidate> list;
    if (for_library(p, conv)) {
        const double rate = p.compute == DType::bf16 ? 400e12 : p.compute == DType::tf32 ? 200e12 : 40e12;
        Candidate candidate = candidate_of(
            p, {.layout = library_layout(p.compute, rank), .activations = {conv.x, conv.w, conv.y}, .workspace_bytes = workspace_for(p)});
        candidate.algorithm = "cudnn";
        candidate.seconds = memory_seconds(p) + work_of(p) / rate;
        for (int t = 0; t < p.inputs; ++t)
            candidate.input_types.push_back(t == conv.w && p.compute == DType::bf16 ? DType::bf16
                                                                                    : p.tensors[static_cast<size_t>(t)].dtype);
        list.push_back(std::move(candidate));
    }
    Candidate direct = only_plain(p)[0];
    direct.algorithm = "direct";
    direct.seconds = memory_seconds(p) + work_of(p) / 2e11;
    list.push_back(std::move(direct));
    return list;
}

// --- By the library -------------------------------------------------------------------------------------------------------------

enum Uid : int64_t { kX = 1, kW, kY, kBias, kSum, kShifted };

// With at least two spatial dims, which the library wants: one of length 1 is put before a single one.
struct Padded {
    Dims dims, strides;
};
Padded padded(const Shape& shape, const Dims& strides) {
    if (shape.size() != 3) return {shape, strides};
    return {{shape[0], shape[1], 1, shape[2]}, {strides[0], strides[1], strides[2] * shape[2], strides[2]}};
}
Window padded(const Window& w) {
    if (w.rank() != 1) return w;
    return {{1, w.kernel[0]}, {1, w.stride[0]}, {1, w.dilation[0]}, {0, w.pad_lo[0]}, {0, w.pad_hi[0]}};
}

class LibraryConv {
  public:
    LibraryConv(const KernelRequest& request, Device& device)
        : device_(device),
          problem_(request.problem),
          conv_(*recognised(request.problem)),
          x_(operand(request, conv_.x)),
          w_(operand(request, conv_.w)),
          y_(operand(request, conv_.y)),
          bias_(conv_.bias == kNoTensor ? nullptr : operand(request, conv_.bias).data) {
        // The library may count on more alignment than the plan gives.
        constexpr uintptr_t kAlignment = 256;
        const auto at = reinterpret_cast<uintptr_t>(request.workspace), aligned = (at + kAlignment - 1) / kAlignment * kAlignment;
        workspace_ = reinterpret_cast<std::byte*>(aligned);
        workspace_bytes_ = workspace_for(request.problem) - static_cast<int64_t>(kAlignment);
    }

    // Nothing when the library has no engine for it.
    std::unique_ptr<Kernel> kernel() {
        if (conv_.direction == Direction::GradWeight) return grad_weight();
        if (!bias_ && !conv_.activation) {
            const auto tuned = tune_conv(w_, workspace_, workspace_bytes_, false);
            return tuned ? run_plan(tuned->plan) : nullptr;
        }
        if (const auto fused = tune_conv(w_, workspace_, workspace_bytes_, true)) return run_plan(fused->plan);
        const auto apart = tune_conv(w_, workspace_, workspace_bytes_, false);
        if (!apart) return nullptr;
        return make_kernel([&device = device_, plan = apart->plan, y = y_, bias = bias_, activation = activation()](const StepContext&) {
            plan->run(device);
            start_bias(device, y, bias, activation ? &*activation : nullptr);
        });
    }

  private:
    std::optional<UnaryOp> activation() const { return conv_.activation ? std::optional(*conv_.activation) : std::nullopt; }

    std::unique_ptr<Kernel> run_plan(const std::shared_ptr<ExecutionPlan>& plan) const {
        return make_kernel([&device = device_, plan](const StepContext&) { plan->run(device); });
    }

    // The gradient of weights that are wider than the activations: written so at once, or rounded first and widened after; what is faster.
    std::unique_ptr<Kernel> grad_weight() {
        const auto at_once = tune_conv(w_, workspace_, workspace_bytes_, false);
        if (w_.desc.dtype == x_.desc.dtype) return at_once ? run_plan(at_once->plan) : nullptr;
        Operand narrow = w_;
        narrow.desc.dtype = x_.desc.dtype;
        narrow.data = workspace_;
        const int64_t taken = (numel(w_.desc.shape) * size_of(narrow.desc.dtype) + 255) / 256 * 256;
        const auto widened =
            taken < workspace_bytes_ ? tune_conv(narrow, workspace_ + taken, workspace_bytes_ - taken, false) : std::nullopt;
        constexpr double kWiden = 4e-6;  // a launch and a little traffic
        const auto faster = [&] { return widened->seconds + kWiden < at_once->seconds; };
        if (at_once && (!widened ||
                        !remembered_choice(device_, key(tensor(kX, x_), tensor(kW, w_), tensor(kY, y_), false) + " rounded first", faster)))
            return run_plan(at_once->plan);
        if (!widened) return nullptr;
        return make_kernel([&device = device_, plan = widened->plan, narrow, w = w_](const StepContext&) {
            plan->run(device);
            start_copy(device, narrow, w);
        });
    }

    GraphTensor tensor(int64_t uid, const Operand& o) const {
        const Padded p = padded(o.desc.shape, strides_of(o.desc.shape, o.layout));
        return {uid, o.desc.dtype, p.dims, p.strides};
    }

    std::optional<Tuned> tune_conv(const Operand& w, void* workspace, int64_t workspace_bytes, bool fused) const {
        const GraphTensor x = tensor(kX, x_), weight = tensor(kW, w), y = tensor(kY, y_);
        TuneRequest request{.policy = {.tensor_cores = problem_.compute != DType::f32},
                            .memory = {{kX, x_.data}, {kW, w.data}, {kY, y_.data}},
                            .workspace = workspace,
                            .workspace_bytes = workspace_bytes};
        try {
            ConvGraph graph(padded(conv_.window), DType::f32);
            if (fused)
                add_fused(graph, x, weight, y);
            else
                graph.convolution(conv_.direction, x, weight, y);
            request.graph = graph.finalize(device_);
            if (fused && bias_) request.memory.emplace_back(kBias, bias_);
            request.problem = key(x, weight, y, fused) + fmt::format(" in {} bytes", workspace_bytes);
            return tune(device_, request);
        } catch (const Error&) {
            return std::nullopt;  // no graph that the library takes
        }
    }

    void add_fused(ConvGraph& graph, const GraphTensor& x, const GraphTensor& w, const GraphTensor& y) const {
        const auto inside = [&](int64_t uid) { return GraphTensor{uid, DType::f32, y.dims, y.strides, true}; };
        GraphTensor result = inside(kSum);
        graph.convolution(conv_.direction, x, w, result);
        if (bias_) {
            Dims dims = Dims::filled(y.dims.size(), 1), strides = Dims::filled(y.dims.size(), 1);
            dims[1] = y.dims[1];
            strides[0] = y.dims[1];
            // Channels are the fastest dim, as in the layout of y.
            for (int d = 2; d < dims.size(); ++d) strides[d] = y.dims[1];
            const GraphTensor sum = conv_.activation ? inside(kShifted) : y;
            graph.add(result, {kBias, DType::f32, dims, strides}, sum);
            result = sum;
        }
        if (conv_.activation) graph.rectify(result, y, conv_.activation->kind == Unary::Relu ? 0 : conv_.activation->alpha);
    }

    std::string key(const GraphTensor& x, const GraphTensor& w, const GraphTensor& y, bool fused) const {
        std::string text = fmt::format("{} {}", static_cast<int>(conv_.direction), name_of(problem_.compute));
        for (const GraphTensor* t : {&x, &w, &y})
            text += fmt::format(" {} {} by {}", name_of(t->dtype), to_string(t->dims), to_string(t->strides));
        const Window& v = conv_.window;
        text += fmt::format(" stride {} dilation {} pad {} {}", to_string(v.stride), to_string(v.dilation), to_string(v.pad_lo),
                            to_string(v.pad_hi));
        if (fused)
            text += fmt::format(" bias {} activation {}", bias_ != nullptr, conv_.activation ? name_of(conv_.activation->kind) : "none");
        return text;
    }

    Device& device_;
    const Problem& problem_;
    ConvProblem conv_;
    Operand x_, w_, y_;
    void* bias_;
    std::byte* workspace_;
    int64_t workspace_bytes_;
};

std::unique_ptr<Kernel> prepare_direct(const KernelRequest& request, Device& device) {
    const auto conv = *recognised(request.problem);
    const DirectConv direct{conv.direction,          conv.window, conv.groups, operand(request, conv.x), operand(request, conv.w),
                            operand(request, conv.y)};
    void* const bias = conv.bias == kNoTensor ? nullptr : operand(request, conv.bias).data;
    const auto activation = conv.activation ? std::optional(*conv.activation) : std::nullopt;
    return make_kernel([&device, direct, bias, activation](const StepContext&) {
        start_direct_conv(device, direct);
        if (bias || activation) start_bias(device, direct.y, bias, activation ? &*activation : nullptr);
    });
}

std::unique_ptr<Kernel> prepare(const KernelRequest& request, Device& device) {
    if (request.algorithm == "conv:cudnn")
        if (auto kernel = LibraryConv(request, device).kernel()) return kernel;
    return prepare_direct(request, device);
}

}  // namespace

Family conv_family() { return {"conv", {{accepts, candidates, prepare}}}; }

}  // namespace convoy::cuda
