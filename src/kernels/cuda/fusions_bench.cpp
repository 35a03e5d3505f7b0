// Which fusions around a convolution cuDNN accepts in bf16, and what they take: the convolution alone beside the convolution with what it is fused to, of the
// best engine each. A program of its own (build/cuda/.../cudnn_fusions): the library's answers depend on its version and the GPU, so they are asked, not remembered.
//
// A fusion pays when it takes less than the convolution alone and a pass over the tensors that it saves; "pass" is that time at the speed of a copy.
#include <cstdio>
#include <functional>
#include <random>

#include "base/error.h"
#include "kernels/cuda/cudnn_graph.h"
#include "kernels/cuda/memory.h"
#include "kernels/cuda/tune.h"
#include "tensor/tensor.h"

namespace convoy::cuda {
namespace {

constexpr int64_t kWorkspace = int64_t{256} << 20;
constexpr DType kData = DType::bf16, kMath = DType::f32;

struct Layer {
    const char* name;
    int64_t n, c, f, size;
    int rank, kernel;
};
constexpr Layer kLayers[] = {
    {"3x3, 64 to 64 on 56", 256, 64, 64, 56, 2, 3},     {"1x1, 64 to 256 on 56", 256, 64, 256, 56, 2, 1},
    {"1x1, 256 to 64 on 56", 256, 256, 64, 56, 2, 1},   {"3x3, 128 to 128 on 28", 256, 128, 128, 28, 2, 3},
    {"3x3, 256 to 256 on 14", 256, 256, 256, 14, 2, 3}, {"3x3x3, 64 to 64 on 64", 2, 64, 64, 64, 3, 3},
};

// The tensors of a problem by uid, in memory where they are real.
class Probe {
  public:
    Probe(Device& device, const Layer& layer)
        : device_(device), layer_(layer), graph_(window_of(layer), kMath), workspace_(device, kWorkspace) {}

    GraphTensor x(bool inside = false) { return tensor(layer_.n, layer_.c, layer_.size, kData, inside); }
    GraphTensor y(bool inside = false) { return tensor(layer_.n, layer_.f, layer_.size, kData, inside); }
    GraphTensor w() { return tensor(layer_.f, layer_.c, layer_.kernel, kData, false); }
    GraphTensor per_channel(int64_t channels, bool one_byte = false) { return tensor(1, channels, 1, one_byte ? kData : kMath, false); }
    GraphTensor wide(const GraphTensor& like) {
        GraphTensor t = like;
        t.uid = ++last_;
        t.dtype = kMath;
        t.is_virtual = true;
        return t;
    }

    void convolve(Direction direction, const GraphTensor& a, const GraphTensor& b, const GraphTensor& c) {
        graph_.convolution(direction, a, b, c);
    }
    void pointwise(cudnnPointwiseMode_t mode, const GraphTensor& a, const GraphTensor* b, const GraphTensor& result) {
        Descriptor what(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
        what.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode)
            .set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
            .finalize();
        Descriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
        operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, what);
        if (mode == CUDNN_POINTWISE_RELU_BWD) {
            operation.set(CUDNN_ATTR_OPERATION_POINTWISE_DYDESC, describe(a))
                .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, describe(*b))
                .set(CUDNN_ATTR_OPERATION_POINTWISE_DXDESC, describe(result));
        } else {
            operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, describe(a)).set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, describe(result));
            if (b) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, describe(*b));
        }
        graph_.append(operation.finalize());
    }
    void statistics(const GraphTensor& of) {
        Descriptor operation(CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR);
        operation.set(CUDNN_ATTR_OPERATION_GENSTATS_MODE, CUDNN_TYPE_GENSTATS_MODE, CUDNN_GENSTATS_SUM_SQSUM)
            .set(CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
            .set(CUDNN_ATTR_OPERATION_GENSTATS_XDESC, describe(of))
            .set(CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, describe(per_channel(of.dims[1])))
            .set(CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC, describe(per_channel(of.dims[1])));
        graph_.append(operation.finalize());
    }
    // The sums that the gradient of a batch norm of `normed` needs.
    void norm_sums(const GraphTensor& gradient, const GraphTensor& normed) {
        const int64_t c = normed.dims[1];
        Descriptor operation(CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR);
        operation.set(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
            .set(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_X_DESC, describe(normed))
            .set(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DY_DESC, describe(gradient));
        for (const auto name : {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MEAN_DESC, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_INVSTD_DESC,
                                CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_BN_SCALE_DESC, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_SCALE_DESC,
                                CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_BIAS_DESC, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_DY_SCALE_DESC,
                                CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_X_SCALE_DESC, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_BIAS})
            operation.set(name, describe(per_channel(c)));
        graph_.append(operation.finalize());
    }

    // Milliseconds of the best engine; the reason in `why` where there is none.
    double best_ms(std::string& why) {
        double best = 0;
        int engines = 0;
        try {
            std::vector<std::pair<int64_t, void*>> memory;
            for (const auto& [uid, piece] : memory_) memory.emplace_back(uid, piece->data());
            for (const EngineConfig& engine : engine_configs(graph_.finalize(device_), {})) {
                constexpr int kTried = 6;
                if (engine.fallback || ++engines > kTried) continue;
                try {
                    ExecutionPlan plan(device_, engine);
                    require(plan.workspace_bytes() <= kWorkspace, "too much scratch memory");
                    plan.bind(memory, workspace_.data());
                    const double ms = 1e3 * measure_runs(
                                                device_, [&] { plan.run(device_); }, 0);
                    if (best == 0 || ms < best) best = ms;
                } catch (const Error& e) {
                    why = e.what();
                }
            }
        } catch (const Error& e) {
            why = e.what();
        }
        if (best == 0 && engines == 0 && why.empty()) why = "no engine";
        return best;
    }

  private:
    static Window window_of(const Layer& layer) {
        const auto each = [&](int64_t value) { return Dims::filled(layer.rank, value); };
        return {each(layer.kernel), each(1), each(1), each(layer.kernel / 2), each(layer.kernel / 2)};
    }
    // Channels last.
    GraphTensor tensor(int64_t n, int64_t c, int64_t size, DType dtype, bool inside) {
        GraphTensor t{.uid = ++last_, .dtype = inside ? kMath : dtype, .dims = {n, c}, .strides = {}, .is_virtual = inside};
        for (int d = 0; d < layer_.rank; ++d) t.dims.push_back(size);
        t.strides = Dims::filled(t.dims.size(), 1);
        int64_t step = c;
        for (int d = t.dims.size() - 1; d > 1; --d) {
            t.strides[d] = step;
            step *= size;
        }
        t.strides[0] = step;
        if (!inside) allocate(t);
        return t;
    }
    // Random numbers, some of them again and again.
    void allocate(const GraphTensor& t) {
        static const Tensor values = [] {
            Tensor wide({1'000'003}, DType::f32);
            std::mt19937 random{1};
            std::normal_distribution<float> normal;
            for (float& v : wide.as<float>()) v = normal(random);
            return wide;
        }();
        const Tensor typed = values.to(t.dtype);
        const int64_t bytes = numel(t.dims) * size_of(t.dtype);
        auto piece = std::make_unique<DeviceMemory>(device_, bytes);
        for (int64_t at = 0; at < bytes; at += typed.bytes())
            check(cudaMemcpy(static_cast<std::byte*>(piece->data()) + at, typed.data(),
                             static_cast<size_t>(std::min(typed.bytes(), bytes - at)), cudaMemcpyHostToDevice),
                  "cudaMemcpy");
        memory_.emplace_back(t.uid, std::move(piece));
    }

    Device& device_;
    const Layer& layer_;
    ConvGraph graph_;
    DeviceMemory workspace_;
    std::vector<std::pair<int64_t, std::unique_ptr<DeviceMemory>>> memory_;
    int64_t last_ = 0;
};

struct Fusion {
    const char* name;
    double passes_x, passes_y;  // over these tensors, that kernels of their own would make
    std::function<void(Probe&)> build;
};

void forward(Probe& p) { p.convolve(Direction::Forward, p.x(), p.w(), p.y()); }
void gradient(Probe& p) { p.convolve(Direction::GradInput, p.x(), p.w(), p.y()); }

// x scaled and shifted by channel, and rectified: what a batch norm leaves to be done.
GraphTensor normalised(Probe& p) {
    const GraphTensor x = p.x(), scale = p.per_channel(x.dims[1], true), shift = p.per_channel(x.dims[1], true);
    const GraphTensor scaled = p.wide(x), shifted = p.wide(x), result = p.wide(x);
    p.pointwise(CUDNN_POINTWISE_MUL, x, &scale, scaled);
    p.pointwise(CUDNN_POINTWISE_ADD, scaled, &shift, shifted);
    p.pointwise(CUDNN_POINTWISE_RELU_FWD, shifted, nullptr, result);
    return result;
}

const std::vector<Fusion> kForward{
    {"convolution, bias, ReLU", 0, 2,
     [](Probe& p) {
         const GraphTensor y = p.y(), sum = p.y(true), shifted = p.wide(y), bias = p.per_channel(y.dims[1]);
         p.convolve(Direction::Forward, p.x(), p.w(), sum);
         p.pointwise(CUDNN_POINTWISE_ADD, sum, &bias, shifted);
         p.pointwise(CUDNN_POINTWISE_RELU_FWD, shifted, nullptr, y);
     }},
    {"convolution, statistics", 0, 1,
     [](Probe& p) {
         const GraphTensor y = p.y();
         p.convolve(Direction::Forward, p.x(), p.w(), y);
         p.statistics(y);
     }},
    {"scale, shift, ReLU, convolution", 2, 0, [](Probe& p) { p.convolve(Direction::Forward, normalised(p), p.w(), p.y()); }},
    {"scale, shift, ReLU, convolution, statistics", 2, 1,
     [](Probe& p) {
         const GraphTensor y = p.y();
         p.convolve(Direction::Forward, normalised(p), p.w(), y);
         p.statistics(y);
     }},
};
const std::vector<Fusion> kBackward{
    {"gradient of the input, of ReLU", 3, 0,
     [](Probe& p) {
         const GraphTensor dx = p.x(), x = p.x(), sum = p.x(true);
         p.convolve(Direction::GradInput, sum, p.w(), p.y());
         p.pointwise(CUDNN_POINTWISE_RELU_BWD, sum, &x, dx);
     }},
    {"gradient of the input, of ReLU, batch norm's sums", 5, 0,
     [](Probe& p) {
         const GraphTensor dx = p.x(), x = p.x(), sum = p.x(true);
         p.convolve(Direction::GradInput, sum, p.w(), p.y());
         p.pointwise(CUDNN_POINTWISE_RELU_BWD, sum, &x, dx);
         p.norm_sums(dx, x);
     }},
};

void report(Device& device, const Layer& layer, const char* alone, const std::function<void(Probe&)>& plain,
            const std::vector<Fusion>& fusions) {
    constexpr double kCopy = 4.3e12;  // bytes a second
    std::string why;
    Probe probe(device, layer);
    plain(probe);
    const double base = probe.best_ms(why);
    std::printf("%-26s %-52s %8.3f ms\n", layer.name, alone, base);
    for (const Fusion& fusion : fusions) {
        why.clear();
        double ms = 0;
        try {
            Probe fused(device, layer);
            fusion.build(fused);
            ms = fused.best_ms(why);
        } catch (const Error& e) {
            why = e.what();
        }
        double positions = static_cast<double>(layer.n);  // all layers have stride 1
        for (int d = 0; d < layer.rank; ++d) positions *= static_cast<double>(layer.size);
        const double passed = positions * (fusion.passes_x * static_cast<double>(layer.c) + fusion.passes_y * static_cast<double>(layer.f));
        if (ms > 0)
            std::printf("%-26s %-52s %8.3f ms, apart %.3f ms\n", "", fusion.name, ms, base + 1e3 * passed * size_of(kData) / kCopy);
        else
            std::printf("%-26s %-52s refused: %s\n", "", fusion.name, why.substr(0, 120).c_str());
    }
    std::fflush(stdout);
}

}  // namespace
}  // namespace convoy::cuda

int main() {
    using namespace convoy::cuda;
    std::string why;
    if (device_count(why) == 0) {
        std::printf("no GPU: %s\n", why.c_str());
        return 1;
    }
    Device device(0);
    device.use();
    std::printf("%s, %s\n", describe_device(0).c_str(), describe_libraries().c_str());
    for (const Layer& layer : kLayers) {
        report(device, layer, "convolution", forward, kForward);
        report(device, layer, "gradient of the input", gradient, kBackward);
    }
}
