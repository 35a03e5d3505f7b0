#include "kernels/cuda/cudnn_graph.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>

#include "base/error.h"

namespace convoy::cuda {

namespace {

cudnnDataType_t library_type(DType type) {
    switch (type) {
        case DType::f64: return CUDNN_DATA_DOUBLE;
        case DType::tf32:
        case DType::f32: return CUDNN_DATA_FLOAT;
        case DType::bf16: return CUDNN_DATA_BFLOAT16;
        case DType::f16: return CUDNN_DATA_HALF;
        default: fail("cuDNN convolutions do not take {}", name_of(type));
    }
}

std::vector<int64_t> list_of(const Dims& dims) { return {dims.begin(), dims.end()}; }

Descriptor pointwise(cudnnPointwiseMode_t mode, DType compute) {
    Descriptor d(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    d.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode)
        .set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, library_type(compute));
    return d;
}

// The attributes of each direction's operation.
struct OperationNames {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t convolution, x, w, y, alpha, beta;
};
OperationNames names_of(Direction direction) {
    switch (direction) {
        case Direction::Forward:
            return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
        case Direction::GradInput:
            return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
        default:
            return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
    }
}

// A descriptor that an attribute of another one is: an engine's of its configuration, the choices of its knobs.
std::vector<Descriptor> descriptors_in(const Descriptor& from, cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type,
                                       int64_t most) {
    std::vector<Descriptor> found;
    std::vector<cudnnBackendDescriptor_t> raw;
    for (int64_t i = 0; i < most; ++i) {
        found.emplace_back(type);
        raw.push_back(found.back().get());
    }
    int64_t count = 0;
    const auto status = cudnnBackendGetAttribute(from.get(), name, CUDNN_TYPE_BACKEND_DESCRIPTOR, most, &count, raw.data());
    if (status != CUDNN_STATUS_SUCCESS) count = 0;
    found.resize(static_cast<size_t>(std::min(count, most)));
    return found;
}

template <class T>
T value_in(const Descriptor& from, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type) {
    T value{};
    int64_t count = 0;
    check(cudnnBackendGetAttribute(from.get(), name, type, 1, &count, &value), "cudnnBackendGetAttribute");
    return value;
}

std::set<cudnnBackendNumericalNote_t> notes_of(const Descriptor& engine) {
    std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes{};
    int64_t count = 0;
    const auto status = cudnnBackendGetAttribute(engine.get(), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                                 CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, notes.data());
    if (status != CUDNN_STATUS_SUCCESS) return {};
    return {notes.begin(), notes.begin() + static_cast<std::ptrdiff_t>(count)};
}

bool allowed(const Descriptor& engine, const EnginePolicy& policy) {
    const auto notes = notes_of(engine);
    if (policy.deterministic && notes.count(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)) return false;
    if (notes.count(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION) || notes.count(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13))
        return false;
    const bool transforms = notes.count(CUDNN_NUMERICAL_NOTE_FFT) || notes.count(CUDNN_NUMERICAL_NOTE_WINOGRAD) ||
                            notes.count(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4) || notes.count(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6);
    if (transforms && !policy.transforms) return false;
    return policy.tensor_cores || !(notes.count(CUDNN_NUMERICAL_NOTE_TENSOR_CORE) || notes.count(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS));
}

// "engine 31, 4=2 17=1"
std::string text_of(const Descriptor& engine, const Descriptor& config) {
    std::string text = fmt::format("engine {},", value_in<int64_t>(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64));
    for (const Descriptor& choice : descriptors_in(config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, 64))
        text += fmt::format(
            " {}={}", static_cast<int>(value_in<cudnnBackendKnobType_t>(choice, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE)),
            value_in<int64_t>(choice, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64));
    return text;
}

}  // namespace

Descriptor::Descriptor(cudnnBackendDescriptorType_t type) {
    cudnnBackendDescriptor_t raw = nullptr;
    check(cudnnBackendCreateDescriptor(type, &raw), "cudnnBackendCreateDescriptor");
    handle_ = std::shared_ptr<void>(raw, [](void* d) { cudnnBackendDestroyDescriptor(d); });
}

Descriptor& Descriptor::set_raw(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count, const void* values) {
    check(cudnnBackendSetAttribute(get(), name, type, count, values), "cudnnBackendSetAttribute");
    return *this;
}

Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, const Descriptor& other) {
    return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, other.get());
}

Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, const std::vector<Descriptor>& others) {
    std::vector<cudnnBackendDescriptor_t> raw;
    for (const Descriptor& d : others) raw.push_back(d.get());
    return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, raw);
}

Descriptor& Descriptor::finalize() {
    check(cudnnBackendFinalize(get()), "cudnnBackendFinalize");
    return *this;
}

Descriptor describe(const GraphTensor& t) {
    constexpr int64_t kAlignment = 16;
    Descriptor d(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    d.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, library_type(t.dtype))
        .set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, list_of(t.dims))
        .set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, list_of(t.strides))
        .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, t.uid)
        .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, kAlignment)
        .set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, t.is_virtual);
    return d.finalize();
}

void ConvGraph::convolution(Direction direction, const GraphTensor& x, const GraphTensor& w, const GraphTensor& y) {
    Descriptor conv(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    conv.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, library_type(compute_))
        .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION)
        .set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, static_cast<int64_t>(window_.rank()))
        .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, list_of(window_.pad_lo))
        .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, list_of(window_.pad_hi))
        .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, list_of(window_.dilation))
        .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, list_of(window_.stride))
        .finalize();
    const OperationNames names = names_of(direction);
    Descriptor operation(names.type);
    operation.set(names.convolution, conv).set(names.x, describe(x)).set(names.w, describe(w)).set(names.y, describe(y));
    if (compute_ == DType::f64)
        operation.set(names.alpha, CUDNN_TYPE_DOUBLE, 1.0).set(names.beta, CUDNN_TYPE_DOUBLE, 0.0);
    else
        operation.set(names.alpha, CUDNN_TYPE_FLOAT, 1.0f).set(names.beta, CUDNN_TYPE_FLOAT, 0.0f);
    append(operation.finalize());
}

void ConvGraph::add(const GraphTensor& x, const GraphTensor& b, const GraphTensor& y) {
    Descriptor sum = pointwise(CUDNN_POINTWISE_ADD, compute_).finalize();
    Descriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, sum)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, describe(x))
        .set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, describe(b))
        .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, describe(y));
    append(operation.finalize());
}

void ConvGraph::rectify(const GraphTensor& x, const GraphTensor& y, double slope_below) {
    Descriptor relu = pointwise(CUDNN_POINTWISE_RELU_FWD, compute_);
    relu.set(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, CUDNN_TYPE_DOUBLE, slope_below).finalize();
    Descriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, relu)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, describe(x))
        .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, describe(y));
    append(operation.finalize());
}

Descriptor ConvGraph::finalize(Device& device) const {
    Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations_);
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, device.cudnn());
    return graph.finalize();
}

std::vector<EngineConfig> engine_configs(const Descriptor& graph, const EnginePolicy& policy) {
    std::vector<EngineConfig> found;
    // What the library falls back to comes last: some of it is slower by orders of magnitude.
    for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
        Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
        heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph).set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
        if (cudnnBackendFinalize(heuristics.get()) != CUDNN_STATUS_SUCCESS) continue;
        constexpr int64_t kAsked = 32;
        std::set<int64_t> seen;
        std::vector<EngineConfig> others;  // of engines that were seen
        for (const Descriptor& config :
             descriptors_in(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, kAsked)) {
            const auto engine = descriptors_in(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1);
            if (engine.empty() || !allowed(engine[0], policy)) continue;
            EngineConfig each{config, value_in<int64_t>(engine[0], CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64),
                              text_of(engine[0], config), mode == CUDNN_HEUR_MODE_FALLBACK};
            const auto same = [&](const EngineConfig& other) { return other.name == each.name; };
            if (std::any_of(found.begin(), found.end(), same) || std::any_of(others.begin(), others.end(), same)) continue;
            (seen.insert(each.engine).second ? found : others).push_back(std::move(each));
        }
        found.insert(found.end(), std::make_move_iterator(others.begin()), std::make_move_iterator(others.end()));
    }
    return found;
}

ExecutionPlan::ExecutionPlan(Device& device, const EngineConfig& engine) : plan_(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
    plan_.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, device.cudnn());
    plan_.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, engine.config).finalize();
    workspace_bytes_ = value_in<int64_t>(plan_, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64);
}

void ExecutionPlan::bind(const std::vector<std::pair<int64_t, void*>>& memory, void* workspace) {
    std::vector<int64_t> uids;
    std::vector<void*> pointers;
    for (const auto& [uid, data] : memory) {
        uids.push_back(uid);
        pointers.push_back(data);
    }
    pack_ = Descriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    pack_.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, uids)
        .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, pointers)
        .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace)
        .finalize();
}

void ExecutionPlan::run(Device& device) const {
    check(cudnnBackendExecute(device.cudnn(), plan_.get(), pack_.get()), "cudnnBackendExecute");
}

}  // namespace convoy::cuda
