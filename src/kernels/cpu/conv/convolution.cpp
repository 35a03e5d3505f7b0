// The algorithms behind the cpu backend's interface: a candidate "conv:im2col:plain" is the algorithm im2col in its variant plain. An algorithm that
// computes the bare sums gets here what a problem has around them: bias and activation, or the bias's gradient.
#include "kernels/cpu/conv/convolution.h"

#include <numeric>

#include "base/error.h"
#include "kernels/cpu/onednn/gemm.h"
#include "kernels/cpu/own.h"

namespace convoy::cpu {

namespace {

constexpr std::string_view kName = "conv";

// What follows the sums of an algorithm that does not end by itself, and its memory.
class Ending {
  public:
    Ending(const ConvView& view, const Layout& y, const CpuContext& context, void* workspace)
        : conv_(view.conv), spans_(spans_of(view.y, y)), elements_(bytes_of(view.y, DType::f32, y) / 4) {
        parts_ = parts_for(context, elements_);
        Scratch scratch(workspace);
        if (conv_.bias == kNoTensor) {
        } else if (conv_.direction == Direction::Forward) {
            vector_ = take_channels(scratch, spans_);
        } else {
            sums_.emplace(scratch, spans_, context, 1);
        }
        bytes_ = scratch.bytes();
    }

    int64_t bytes() const { return bytes_; }
    bool empty() const { return conv_.bias == kNoTensor && !conv_.activation; }

    void run(float* y, float* bias) const {
        if (sums_) return sum(y, bias);
        const auto& kernels = vector_kernels();
        const bool relu = conv_.activation && conv_.activation->kind == Unary::Relu;
        if (vector_) {
            fill_channels(spans_, vector_, [&](int64_t c) { return bias[c]; });
            const vec::ChannelMapArgs args{.spans = spans_,
                                           .kind = relu ? vec::ChannelMap::BiasRelu : vec::ChannelMap::Bias,
                                           .x = y,
                                           .dy = nullptr,
                                           .vector = vector_,
                                           .y = y};
            in_parts(parts_, spans_.planes * spans_.units, [&](int, int64_t begin, int64_t end) { kernels.channel_map(args, begin, end); });
            if (relu) return;
        }
        if (!conv_.activation) return;
        const vec::UnaryArgs args{.kind = relu ? vec::UnaryKind::Relu : vec::UnaryKind::LeakyRelu,
                                  .alpha = static_cast<float>(conv_.activation->alpha),
                                  .x = y,
                                  .dy = nullptr,
                                  .y = y};
        in_flat_parts(parts_, elements_, [&](int, int64_t begin, int64_t end) { kernels.unary(args, begin, end); });
    }

  private:
    void sum(const float* dy, float* bias) const {
        const vec::ChannelSumArgs args{.spans = spans_, .kind = vec::ChannelSum::Sum, .x = dy};
        sums_->run(
            [&](const vec::SumBuffers& buffers, int64_t begin, int64_t end) { vector_kernels().channel_sum(args, buffers, begin, end); });
        for (int64_t c = 0; c < spans_.channels; ++c) bias[c] = static_cast<float>(sums_->total(0, c));
    }

    ConvProblem conv_;
    vec::Spans spans_;
    int64_t elements_, bytes_ = 0;
    int parts_ = 1;
    float* vector_ = nullptr;
    std::optional<ChannelSums> sums_;
};

class Convolutions : public Implementation {
  public:
    explicit Convolutions(std::vector<const ConvAlgorithm*> algorithms) : algorithms_(std::move(algorithms)) {}

    std::string_view name() const override { return kName; }

    std::vector<Candidate> candidates(const Problem& problem, const CpuContext& context) const override {
        const auto view = conv_view(problem);
        if (!view) return {};
        use_threads(context.threads);
        std::vector<Candidate> list;
        for (const ConvAlgorithm* algorithm : algorithms_)
            for (const ConvOffer& offer : algorithm->offers(*view, context).list)
                list.push_back(candidate(*algorithm, *view, offer, problem, context));
        return list;
    }

    std::vector<Refusal> refusals(const Problem& problem, const CpuContext& context) const override {
        const auto view = conv_view(problem);
        if (!view) return {};
        use_threads(context.threads);
        std::vector<Refusal> list;
        for (const ConvAlgorithm* algorithm : algorithms_)
            if (auto offers = algorithm->offers(*view, context); offers.list.empty())
                list.push_back({fmt::format("{}:{}", kName, algorithm->name), std::move(offers.refusal)});
        return list;
    }

    std::unique_ptr<Kernel> prepare(const KernelRequest& request, const CpuContext& context) const override {
        const auto view = conv_view(request.problem);
        CONVOY_CHECK(view, "{} is no convolution", text_of(request.problem));
        use_threads(context.threads);
        const auto [algorithm, variant] = find(request.algorithm);
        ConvCall call{.view = *view, .variant = variant, .request = request, .context = context, .workspace = request.workspace};
        call.x = floats(request, view->conv.x);
        call.w = floats(request, view->conv.w);
        call.y = floats(request, view->conv.y);
        if (algorithm->ends) return algorithm->prepare(call);
        const Ending ending(*view, operand(request, view->conv.y).layout, context, request.workspace);
        if (request.workspace) call.workspace = static_cast<std::byte*>(request.workspace) + ending.bytes();
        std::shared_ptr<Kernel> sums = algorithm->prepare(call);
        float* const bias = view->conv.bias == kNoTensor ? nullptr : floats(request, view->conv.bias);
        return make_kernel([=, y = call.y, threads = context.threads](const StepContext& step) {
            use_threads(threads);
            sums->run(step);
            if (!ending.empty()) ending.run(y, bias);
        });
    }

  private:
    std::pair<const ConvAlgorithm*, std::string> find(const std::string& name) const {
        const size_t begin = kName.size() + 1, end = name.find(':', begin);
        for (const ConvAlgorithm* algorithm : algorithms_)
            if (name.substr(begin, end - begin) == algorithm->name)
                return {algorithm, end == std::string::npos ? "" : name.substr(end + 1)};
        CONVOY_CHECK(false, "no convolution {}", name);
    }

    static Candidate candidate(const ConvAlgorithm& algorithm, const ConvView& view, const ConvOffer& offer, const Problem& problem,
                               const CpuContext& context) {
        Candidate result{.algorithm = fmt::format("{}:{}{}{}", kName, algorithm.name, offer.variant.empty() ? "" : ":", offer.variant),
                         .workspace_bytes = offer.workspace_bytes,
                         .seconds = offer.seconds,
                         .numerics = algorithm.numerics,
                         .operations = offer.operations};
        if (!algorithm.ends) {
            const Ending ending(view, offer.y, context, nullptr);
            result.workspace_bytes += ending.bytes();
            if (!ending.empty()) result.seconds += 2e-10 * static_cast<double>(numel(view.y)) / context.threads;
        }
        for (int t = 0; t < problem.inputs + problem.outputs; ++t)
            (is_input(problem, t) ? result.inputs : result.outputs)
                .push_back(t == view.conv.x   ? offer.x
                           : t == view.conv.y ? offer.y
                           : t == view.conv.w ? offer.w
                                              : Layout::plain());
        return result;
    }

    std::vector<const ConvAlgorithm*> algorithms_;
};

}  // namespace

const std::vector<const ConvAlgorithm*>& conv_algorithms() {
    static const std::vector<const ConvAlgorithm*> list{&onednn_winograd(), &onednn_direct(), &winograd3d(), &amx(),    &matrix(),
                                                        &winograd_f4(),     &winograd_f2(),   &direct(),     &im2col(), &im2row(),
                                                        &kn2row(),          &kn2row_gemm(),   &kn2col(),     &fft(),    &scalar_row(),
                                                        &scalar_column(),   &onednn_gemm()};
    return list;
}

std::unique_ptr<Implementation> make_convolutions(std::vector<const ConvAlgorithm*> algorithms) {
    return std::make_unique<Convolutions>(std::move(algorithms));
}

const Implementation& convolutions() {
    static const Convolutions instance(conv_algorithms());
    return instance;
}

Layout tap_major(int rank) {
    Layout layout;
    for (int i = 2; i < rank + 2; ++i) layout.order.push_back(i);
    layout.order.push_back(0);
    layout.order.push_back(1);
    return layout;
}

Layout blocked_weights(const ConvView& view, int64_t block) {
    Layout layout;
    layout.order.resize(static_cast<size_t>(view.rank) + 2);
    std::iota(layout.order.begin(), layout.order.end(), 0);
    layout.inner = {{1, block}, {0, block}};
    if (view.direction() == Direction::GradInput) std::swap(layout.inner[0], layout.inner[1]);
    return layout;
}

double seconds_of(const Estimate& e, const CpuContext& context) {
    // Measured with oneDNN's matrix product on a core that multiplies at about 120 GFLOP/s.
    constexpr double kRate = 75e9, kBytes = 6e9, kCall = 2e-6;
    const auto fill = [](int64_t size) { return static_cast<double>(size) / static_cast<double>(size + 12); };
    return kCall + e.slowness * (e.operations / (kRate * fill(e.m) * fill(e.n) * fill(e.k)) + e.bytes / kBytes) / context.threads;
}

}  // namespace convoy::cpu
