// Three-dimensional 3x3x3 convolutions of stride 1 by Winograd's method: F(2, 3) or F(4, 3) along the depth, which makes four (six) products of
// slices out of what were six (twelve), and oneDNN's two-dimensional F(4x4, 3x3) for each of them. Points of the depth's transform are done one after
// the other, each adding its share to the result. Needs AVX-512, because the library's part does.
#include <algorithm>

#include "base/error.h"
#include "kernels/cpu/conv/algorithm.h"
#include "kernels/cpu/onednn/winograd3d_plan.h"

namespace convoy::cpu {

namespace {

using Plan = Winograd3dPlan;

bool not_zero(float factor) { return factor != 0; }

// Forward and input gradient, which differ in what is read and in the order of the weights' slices.
class ConvolveKernel : public Kernel {
  public:
    ConvolveKernel(const Plan& plan, const ConvCall& call) : plan_(plan), context_(call.context) {
        const KernelRequest& request = call.request;
        const Described slice = describe_slice(plan, true);
        const Winograd3dWorkspace space(plan, slice, request.workspace);
        const ConvProblem& conv = plan.conv;
        source_ = slices_of(operand(request, plan.mirrored() ? conv.y : conv.x));
        result_ = slices_of(operand(request, plan.mirrored() ? conv.x : conv.y));
        weights_ = plan.weights(floats(request, conv.w));
        gathered_ = plan.mirrored() ? space.y : space.x;
        product_ = plan.mirrored() ? space.x : space.y;
        if (conv.bias >= 0) ending_.bias = floats(request, conv.bias);
        if (conv.activation) ending_.slope = conv.activation->kind == Unary::LeakyRelu ? static_cast<float>(conv.activation->alpha) : 0.0f;
        for (int p = 0; p < plan.transform->points; ++p) {
            float* const w = space.w + p % plan.weights_kept() * plan.weight_floats();
            points_.push_back(point(p, w, bind_slice(plan, slice, space, w, context_.threads)));
        }
    }

    void run(const StepContext& step) override {
        for (int64_t c = 0; c < plan_.chunks; ++c)
            for (const Point& p : points_) {
                if (c == 0) gather_weights(weights_, p.factors, p.weights, context_);
                gather_tiles(source_, plan_.range(c), p.taps, gathered_, context_);
                p.product->run(step);
                scatter_tiles(product_, result_, plan_.range(c), p.results, ending_, context_);
            }
    }

  private:
    struct Point {
        std::vector<Tap> taps;
        std::vector<TapResult> results;
        float factors[3];
        float* weights;
        std::unique_ptr<Kernel> product;
    };

    Point point(int p, float* weights, std::unique_ptr<Kernel> product) const {
        const DepthTransform& t = *plan_.transform;
        Point result{.taps = plan_.input_taps(p), .results = {}, .factors = {}, .weights = weights, .product = std::move(product)};
        for (int kd = 0; kd < 3; ++kd) result.factors[kd] = t.weight[p][plan_.mirrored() ? 2 - kd : kd];
        for (int i = 0; i < t.outputs; ++i) {
            const float* const row = t.output[i];
            if (row[p] == 0) continue;
            result.results.push_back({.tap = {i, row[p]},
                                      .add = std::any_of(row, row + p, not_zero),
                                      .last = std::none_of(row + p + 1, row + t.points, not_zero)});
        }
        return result;
    }

    Plan plan_;
    CpuContext context_;
    Slices source_, result_;
    DepthWeights weights_;
    float *gathered_, *product_;
    Ending ending_;
    std::vector<Point> points_;
};

// dw = weight^T ((output^T dy) . (input x)), summed over tiles.
class WeightGradKernel : public Kernel {
  public:
    WeightGradKernel(const Plan& plan, const ConvCall& call)
        : plan_(plan), context_(call.context), slice_(describe_slice(plan, true)), space_(plan, slice_, call.workspace) {
        const KernelRequest& request = call.request;
        const ConvProblem& conv = plan.conv;
        x_ = slices_of(operand(request, conv.x));
        dy_ = slices_of(operand(request, conv.y));
        dw_ = plan.weights(floats(request, conv.w));
        if (plan.sums_bias()) bias_ = floats(request, conv.bias);
        product_ = bind_slice(plan, slice_, space_, space_.w, context_.threads);
        for (int p = 0; p < plan.transform->points; ++p) points_.push_back({plan.input_taps(p), output_taps(p)});
    }

    void run(const StepContext& step) override {
        const DepthTransform& t = *plan_.transform;
        for (int64_t c = 0; c < plan_.chunks; ++c) {
            bool add[3] = {c > 0, c > 0, c > 0};
            for (int p = 0; p < t.points; ++p) {
                const Point& point = points_[static_cast<size_t>(p)];
                gather_tiles(x_, plan_.range(c), point.x_taps, space_.x, context_);
                gather_tiles(dy_, plan_.range(c), point.dy_taps, space_.y, context_);
                product_->run(step);
                if (p == kSums) add_bias(c > 0);
                scatter_weights(space_.w, dw_, t.weight[p], add, context_);
                for (int kd = 0; kd < 3; ++kd) add[kd] = add[kd] || t.weight[p][kd] != 0;
            }
        }
    }

  private:
    // The point at which a tile's output slices are summed with weights of one: its bias gradient is that of the tile.
    static constexpr int kSums = 1;

    struct Point {
        std::vector<Tap> x_taps, dy_taps;
    };

    std::vector<Tap> output_taps(int p) const {
        std::vector<Tap> taps;
        for (int i = 0; i < plan_.transform->outputs; ++i)
            if (plan_.transform->output[i][p] != 0) taps.push_back({i, plan_.transform->output[i][p]});
        return taps;
    }

    void add_bias(bool add) const {
        for (int64_t f = 0; bias_ && f < plan_.y[1]; ++f) bias_[f] = (add ? bias_[f] : 0) + space_.bias[f];
    }

    Plan plan_;
    CpuContext context_;
    Described slice_;
    Winograd3dWorkspace space_;
    Slices x_, dy_;
    DepthWeights dw_;
    float* bias_ = nullptr;
    std::unique_ptr<Kernel> product_;
    std::vector<Point> points_;
};

Plan plan_of(const ConvView& view, const CpuContext& context, int outputs) { return winograd3d_plan(view, outputs, context.cached_bytes); }

// Multiplications and additions: of the two-dimensional products, F(4x4, 3x3), at every point of the depth's transform.
double operations(const Plan& plan) {
    const auto tiles = [](int64_t n) { return static_cast<double>((n + 3) / 4); };
    const Shape& result = plan.mirrored() ? plan.x : plan.y;
    return 2.0 * 36 * static_cast<double>(plan.transform->points * plan.chunk * plan.chunks) * tiles(result[3]) * tiles(result[4]) *
           static_cast<double>(plan.w[0] * plan.w[1]);
}

ConvOffers offers(const ConvView& view, const CpuContext& context) {
    if (auto reason = winograd3d_refusal(view); !reason.empty()) return ConvOffers::refuse(std::move(reason));
    ConvOffers result;
    for (const int outputs : {4, 2}) {
        const Plan plan = plan_of(view, context, outputs);
        try {
            const Described slice = describe_slice(plan, false);
            const auto weight = weight_layout(plan, slice);
            if (!weight) continue;
            for (const bool last : {false, true}) {
                const Layout layout = last ? Layout::channels_last(5) : Layout::blocked(5, 16);
                result.list.push_back({.variant = fmt::format("d{}:{}", outputs, last ? "last" : "blocked"),
                                       .x = layout,
                                       .w = *weight,
                                       .y = layout,
                                       .workspace_bytes = Winograd3dWorkspace(plan, slice).bytes,
                                       .operations = operations(plan),
                                       .seconds = seconds_of(plan, layout) / context.threads});
            }
        } catch (const dnnl::error&) {
            result.refusal = "oneDNN lacks Winograd's method for its slices (no AVX-512, or padding that it does not take)";
        }
    }
    return result;
}

std::unique_ptr<Kernel> prepare(const ConvCall& call) {
    const Plan plan = plan_of(call.view, call.context, call.variant.rfind("d2", 0) == 0 ? 2 : 4);
    if (call.view.direction() == Direction::GradWeight) return std::make_unique<WeightGradKernel>(plan, call);
    return std::make_unique<ConvolveKernel>(plan, call);
}

}  // namespace

const ConvAlgorithm& winograd3d() {
    // What stays in the cache: from 3 MB to 24 MB the U-Net's convolutions take the same time within a tenth.
    static const ConvAlgorithm algorithm{"winograd3d", Numerics::Fast, true, offers, prepare};
    return algorithm;
}

}  // namespace convoy::cpu
