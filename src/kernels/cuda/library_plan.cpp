#include "kernels/cuda/library_plan.h"

#include "base/error.h"
#include "kernels/cuda/tune.h"
#include "kernels/cuda/views.h"

namespace convoy::cuda {

namespace {

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

GraphTensor tensor(int64_t uid, const Operand& o) {
    const Padded p = padded(o.desc.shape, strides_of(o.desc.shape, o.layout));
    return {uid, o.desc.dtype, p.dims, p.strides};
}

void add_fused(ConvGraph& graph, const Asked& asked) {
    const GraphTensor y = tensor(kY, asked.y);
    const auto inside = [&](int64_t uid) { return GraphTensor{uid, DType::f32, y.dims, y.strides, true}; };
    const auto& [bias, activation] = asked.at_once;
    GraphTensor result = inside(kSum);
    graph.convolution(asked.direction, tensor(kX, asked.x), tensor(kW, asked.w), result);
    if (bias) {
        Dims dims = Dims::filled(y.dims.size(), 1), strides = Dims::filled(y.dims.size(), 1);
        dims[1] = y.dims[1];
        strides[0] = y.dims[1];
        // Channels are the fastest dim, as in the layout of y.
        for (int d = 2; d < dims.size(); ++d) strides[d] = y.dims[1];
        const GraphTensor sum = activation ? inside(kShifted) : y;
        graph.add(result, {kBias, DType::f32, dims, strides}, sum);
        result = sum;
    }
    if (activation) graph.rectify(result, y, activation->kind == Unary::Relu ? 0 : activation->alpha);
}

}  // namespace

std::string Follow::text() const {
    return *this ? fmt::format(" bias {} activation {}", bias != nullptr, activation ? name_of(activation->kind) : "none") : "";
}

std::string text_of(const Asked& asked) {
    std::string text = fmt::format("{} {}", static_cast<int>(asked.direction), name_of(asked.compute));
    for (const Operand* o : {&asked.x, &asked.w, &asked.y}) {
        const GraphTensor t = tensor(kX, *o);
        text += fmt::format(" {} {} by {}", name_of(t.dtype), to_string(t.dims), to_string(t.strides));
    }
    const Window v = padded(asked.window);
    text += fmt::format(" stride {} dilation {} pad {} {}", to_string(v.stride), to_string(v.dilation), to_string(v.pad_lo),
                        to_string(v.pad_hi));
    if (asked.transforms != library_transforms(asked.compute)) text += " without transforms";
    return text + asked.at_once.text();
}

std::shared_ptr<ExecutionPlan> library_plan(Device& device, const Asked& asked, const Scratch& scratch, double hopeless,
                                            Failures& failures) {
    TuneRequest request{.problem = text_of(asked),
                        .policy = {.tensor_cores = asked.compute != DType::f32, .transforms = asked.transforms},
                        .memory = {{kX, asked.x.data}, {kW, asked.w.data}, {kY, asked.y.data}},
                        .workspace = scratch.rest(),
                        .workspace_bytes = scratch.left(),
                        .hopeless = hopeless};
    if (asked.at_once.bias) request.memory.emplace_back(kBias, asked.at_once.bias);
    try {
        ConvGraph graph(padded(asked.window), DType::f32);
        if (asked.at_once)
            add_fused(graph, asked);
        else
            graph.convolution(asked.direction, tensor(kX, asked.x), tensor(kW, asked.w), tensor(kY, asked.y));
        request.graph = graph.finalize(device);
        return tune(device, request, failures);
    } catch (const Error& e) {
        failures.add(e);  // no graph that the library takes
        return nullptr;
    }
}

}  // namespace convoy::cuda
