// cuDNN's stand-in: descriptors that hold what they are given, a few engines that differ in what they support and how they may be used, and convolutions with
// pointwise operations behind them as plain loops.
#include <cudnn.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/cuda/stand_in/stand_in.h"

using namespace stand_in;

struct StandInCudnn {
    cudaStream_t stream = nullptr;
};

namespace {

// --- Descriptors ----------------------------------------------------------------------------------------------------------------

struct Held;
using Descriptor = std::shared_ptr<Held>;
struct Value {
    cudnnBackendAttributeType_t type{};
    std::vector<std::byte> bytes;
    std::vector<Descriptor> descriptors;
};
struct Held {
    cudnnBackendDescriptorType_t type{};
    bool finished = false;
    std::map<cudnnBackendAttributeName_t, Value> values{};
    // Of an engine that the heuristics name, and of the plan that is made of it.
    int64_t engine = 0;
};

thread_local std::string last_error;

struct Refusal {
    cudnnStatus_t status;
    std::string why;
};
void require(bool holds, const char* why, cudnnStatus_t status = CUDNN_STATUS_NOT_SUPPORTED) {
    if (!holds) throw Refusal{status, why};
}
template <class Fn>
cudnnStatus_t said(const Fn& fn) {
    try {
        fn();
        return CUDNN_STATUS_SUCCESS;
    } catch (const Refusal& refusal) {
        last_error = refusal.why;
        return refusal.status;
    }
}

Descriptor& held(cudnnBackendDescriptor_t raw) { return *static_cast<Descriptor*>(raw); }

size_t size_of(cudnnBackendAttributeType_t type) {
    switch (type) {
        case CUDNN_TYPE_INT64: return sizeof(int64_t);
        case CUDNN_TYPE_DOUBLE: return sizeof(double);
        case CUDNN_TYPE_FLOAT: return sizeof(float);
        case CUDNN_TYPE_BOOLEAN: return sizeof(bool);
        case CUDNN_TYPE_HANDLE:
        case CUDNN_TYPE_VOID_PTR: return sizeof(void*);
        default: return sizeof(int);  // enumerations
    }
}

const Value& value_of(const Descriptor& d, cudnnBackendAttributeName_t name) {
    const auto at = d->values.find(name);
    require(at != d->values.end(), "an attribute is missing", CUDNN_STATUS_BAD_PARAM);
    return at->second;
}
template <class T>
std::vector<T> list_of(const Descriptor& d, cudnnBackendAttributeName_t name) {
    const Value& value = value_of(d, name);
    require(sizeof(T) == size_of(value.type), "an attribute of another type", CUDNN_STATUS_BAD_PARAM);
    std::vector<T> list(value.bytes.size() / sizeof(T));
    if (!list.empty()) std::memcpy(list.data(), value.bytes.data(), value.bytes.size());
    return list;
}
template <class T>
T one_of(const Descriptor& d, cudnnBackendAttributeName_t name) {
    const auto& value = value_of(d, name);
    T one{};
    require(value.bytes.size() == sizeof(T), "an attribute of another type", CUDNN_STATUS_BAD_PARAM);
    std::memcpy(&one, value.bytes.data(), sizeof(T));
    return one;
}
const Descriptor& part_of(const Descriptor& d, cudnnBackendAttributeName_t name) {
    const auto& list = value_of(d, name).descriptors;
    require(list.size() == 1 && list[0]->finished, "a descriptor is missing or not finished", CUDNN_STATUS_BAD_PARAM);
    return list[0];
}

// --- What a graph asks for ------------------------------------------------------------------------------------------------------

constexpr int kDims = 5;
using Dims5 = std::array<int64_t, kDims>;

struct Tensor {
    int64_t uid = 0;
    cudaDataType type = CUDA_R_32F;
    int given = 0;  // dims
    Dims5 dims{}, strides{};
    bool is_virtual = false;

    int64_t at(const Dims5& i) const {
        int64_t place = 0;
        for (int d = 0; d < kDims; ++d) place += i[static_cast<size_t>(d)] * strides[static_cast<size_t>(d)];
        return place;
    }
    int64_t count() const { return dims[0] * dims[1] * dims[2] * dims[3] * dims[4]; }
    // Channels are neighbours in memory.
    bool channels_last() const { return strides[1] == 1; }
};

cudaDataType type_of(cudnnDataType_t type) {
    return type == CUDNN_DATA_DOUBLE     ? CUDA_R_64F
           : type == CUDNN_DATA_HALF     ? CUDA_R_16F
           : type == CUDNN_DATA_BFLOAT16 ? CUDA_R_16BF
                                         : CUDA_R_32F;
}

// Spatial dims go to the end of three.
Dims5 five(const std::vector<int64_t>& list, int64_t fill) {
    Dims5 result{list[0], list[1], fill, fill, fill};
    for (size_t d = 2; d < list.size(); ++d) result[kDims - list.size() + d] = list[d];
    return result;
}
std::array<int64_t, 3> three(const std::vector<int64_t>& list, int64_t fill) {
    std::array<int64_t, 3> result{fill, fill, fill};
    for (size_t d = 0; d < list.size(); ++d) result[3 - list.size() + d] = list[d];
    return result;
}

Tensor tensor_of(const Descriptor& d) {
    const auto dims = list_of<int64_t>(d, CUDNN_ATTR_TENSOR_DIMENSIONS), strides = list_of<int64_t>(d, CUDNN_ATTR_TENSOR_STRIDES);
    require(dims.size() == strides.size() && (dims.size() == 4 || dims.size() == 5), "tensors have four or five dims");
    require(*std::min_element(dims.begin(), dims.end()) > 0, "an empty tensor", CUDNN_STATUS_BAD_PARAM);
    return {one_of<int64_t>(d, CUDNN_ATTR_TENSOR_UNIQUE_ID),
            type_of(one_of<cudnnDataType_t>(d, CUDNN_ATTR_TENSOR_DATA_TYPE)),
            static_cast<int>(dims.size()),
            five(dims, 1),
            five(strides, 0),
            one_of<bool>(d, CUDNN_ATTR_TENSOR_IS_VIRTUAL)};
}

enum class Direction { Forward, GradInput, GradWeight };
struct Pointwise {
    bool add = false;  // else a ReLU
    double slope = 0;
    Tensor x, b, y;
};
struct Asked {
    Direction direction{};
    Tensor x, w, y;
    std::array<int64_t, 3> pad{}, stride{}, dilation{};
    std::vector<Pointwise> behind;

    const Tensor& result() const { return direction == Direction::Forward ? y : direction == Direction::GradInput ? x : w; }
    int64_t groups() const { return x.dims[1] / w.dims[1]; }
};

struct Names {
    cudnnBackendDescriptorType_t type;
    Direction direction;
    cudnnBackendAttributeName_t convolution, x, w, y, alpha, beta;
};
constexpr Names kNames[] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, Direction::Forward, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, Direction::GradInput,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, Direction::GradWeight,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
};

void take_convolution(const Descriptor& op, const Names& names, Asked& asked) {
    const Descriptor& conv = part_of(op, names.convolution);
    asked.direction = names.direction;
    asked.x = tensor_of(part_of(op, names.x));
    asked.w = tensor_of(part_of(op, names.w));
    asked.y = tensor_of(part_of(op, names.y));
    require(one_of<float>(op, names.alpha) == 1 && one_of<float>(op, names.beta) == 0, "scales are 1 and 0 here");
    require(one_of<cudnnConvolutionMode_t>(conv, CUDNN_ATTR_CONVOLUTION_CONV_MODE) == CUDNN_CROSS_CORRELATION,
            "windows are not turned here");
    const auto before = list_of<int64_t>(conv, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
    require(before == list_of<int64_t>(conv, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS), "padding is the same before and behind");
    require(static_cast<int>(before.size()) == asked.x.given - 2, "as many paddings as spatial dims", CUDNN_STATUS_BAD_PARAM);
    require(*std::min_element(before.begin(), before.end()) >= 0, "padding is not negative", CUDNN_STATUS_BAD_PARAM);
    asked.pad = three(before, 0);
    asked.stride = three(list_of<int64_t>(conv, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES), 1);
    asked.dilation = three(list_of<int64_t>(conv, CUDNN_ATTR_CONVOLUTION_DILATIONS), 1);
    const bool channels = asked.x.dims[1] % asked.w.dims[1] == 0 && asked.w.dims[0] % asked.groups() == 0;
    require(channels && asked.x.dims[0] == asked.y.dims[0] && asked.w.dims[0] == asked.y.dims[1], "operands that do not fit",
            CUDNN_STATUS_BAD_PARAM);
    for (size_t d = 0; d < 3; ++d) {
        const int64_t reach = asked.x.dims[2 + d] + 2 * asked.pad[d] - (asked.w.dims[2 + d] - 1) * asked.dilation[d] - 1;
        require(reach >= 0 && asked.y.dims[2 + d] == reach / asked.stride[d] + 1, "sizes that do not fit", CUDNN_STATUS_BAD_PARAM);
    }
}

Asked asked_of(const Descriptor& graph) {
    Asked asked;
    const auto& ops = value_of(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS).descriptors;
    require(!ops.empty(), "an empty graph", CUDNN_STATUS_BAD_PARAM);
    for (const Descriptor& op : ops) {
        require(op->finished, "an operation is not finished", CUDNN_STATUS_BAD_PARAM);
        const auto names = std::find_if(std::begin(kNames), std::end(kNames), [&](const Names& n) { return n.type == op->type; });
        if (names != std::end(kNames)) {
            require(&op == &ops[0], "the convolution comes first here");
            take_convolution(op, *names, asked);
            continue;
        }
        require(&op != &ops[0], "the convolution comes first here");
        const Descriptor& how = part_of(op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
        Pointwise pass{.add = one_of<cudnnPointwiseMode_t>(how, CUDNN_ATTR_POINTWISE_MODE) == CUDNN_POINTWISE_ADD};
        pass.x = tensor_of(part_of(op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC));
        pass.y = tensor_of(part_of(op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
        if (pass.add)
            pass.b = tensor_of(part_of(op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC));
        else
            pass.slope = one_of<double>(how, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE);
        const Tensor& last = asked.behind.empty() ? asked.result() : asked.behind.back().y;
        require(pass.x.uid == last.uid && last.is_virtual, "operations follow each other here");
        asked.behind.push_back(pass);
    }
    return asked;
}

// --- Engines --------------------------------------------------------------------------------------------------------------------

struct Engine {
    int64_t number;
    std::vector<cudnnBackendNumericalNote_t> notes;
    size_t workspace;
    bool fallback;
    bool (*supports)(const Asked&);
    bool right = true;  // others must not be taken
};

bool has_16_bits(const Tensor& t) { return t.type == CUDA_R_16BF || t.type == CUDA_R_16F; }
bool wants_nothing(const Asked& asked) { return asked.behind.empty(); }
bool for_tensor_cores(const Asked& asked) {
    const int64_t pack = has_16_bits(asked.x) ? 8 : 4;
    const bool lies = asked.x.channels_last() && asked.y.channels_last();
    const bool packs = asked.x.dims[1] % pack == 0 && asked.y.dims[1] % pack == 0 && asked.w.dims[1] % pack == 0;
    return lies && packs && (asked.behind.empty() || (has_16_bits(asked.x) && asked.direction == Direction::Forward));
}
bool for_transforms(const Asked& asked) {
    return wants_nothing(asked) && asked.stride == std::array<int64_t, 3>{1, 1, 1} && asked.dilation == std::array<int64_t, 3>{1, 1, 1} &&
           !has_16_bits(asked.x) && asked.groups() == 1;
}

const std::vector<Engine>& engines() {
    static const std::vector<Engine> all{
        {60, {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}, 0, false, wants_nothing, false},
        {10, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, 64 << 10, false, for_tensor_cores},
        {61, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION}, 0, false, for_tensor_cores, false},
        {11, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, 0, false, for_tensor_cores},
        {20, {CUDNN_NUMERICAL_NOTE_FFT}, 256 << 10, false, for_transforms},
        {62, {CUDNN_NUMERICAL_NOTE_WINOGRAD, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13}, 0, false, for_transforms, false},
        {0, {}, 1 << 10, false, wants_nothing},
        {1, {}, 0, true, wants_nothing},
    };
    return all;
}
const Engine& engine_of(const Descriptor& d) {
    return *std::find_if(engines().begin(), engines().end(), [&](const Engine& e) { return e.number == d->engine; });
}

Descriptor finished(cudnnBackendDescriptorType_t type, int64_t engine = 0) {
    auto made = std::make_shared<Held>(Held{.type = type, .finished = true});
    made->engine = engine;
    return made;
}
template <class T>
Value value(cudnnBackendAttributeType_t type, const T& one) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(&one);
    return {type, {bytes, bytes + sizeof one}, {}};
}

// The configurations that heuristics name; each has its engine and one knob.
std::vector<Descriptor> configurations(const Descriptor& heuristics) {
    const Descriptor& graph = part_of(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    const bool fallback = one_of<cudnnBackendHeurMode_t>(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE) == CUDNN_HEUR_MODE_FALLBACK;
    const Asked asked = asked_of(graph);
    std::vector<Descriptor> found;
    for (const Engine& each : engines()) {
        if (each.fallback != fallback || !each.supports(asked)) continue;
        const Descriptor engine = finished(CUDNN_BACKEND_ENGINE_DESCRIPTOR, each.number);
        engine->values[CUDNN_ATTR_ENGINE_GLOBAL_INDEX] = value(CUDNN_TYPE_INT64, each.number);
        Value& notes = engine->values[CUDNN_ATTR_ENGINE_NUMERICAL_NOTE];
        notes.type = CUDNN_TYPE_NUMERICAL_NOTE;
        for (const auto note : each.notes) {
            const auto bytes = value(CUDNN_TYPE_NUMERICAL_NOTE, note).bytes;
            notes.bytes.insert(notes.bytes.end(), bytes.begin(), bytes.end());
        }
        const Descriptor knob = finished(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
        knob->values[CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE] = value(CUDNN_TYPE_KNOB_TYPE, CUDNN_KNOB_TYPE_SPLIT_K);
        knob->values[CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE] = value(CUDNN_TYPE_INT64, int64_t{1});
        const Descriptor config = finished(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, each.number);
        config->values[CUDNN_ATTR_ENGINECFG_ENGINE].descriptors = {engine};
        config->values[CUDNN_ATTR_ENGINECFG_KNOB_CHOICES].descriptors = {knob};
        config->values[CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH].descriptors = {graph};
        found.push_back(config);
    }
    return found;
}

// --- Computing ------------------------------------------------------------------------------------------------------------------

template <class Fn>
void for_each(const Dims5& dims, const Fn& fn) {
    Dims5 i{};
    for (i[0] = 0; i[0] < dims[0]; ++i[0])
        for (i[1] = 0; i[1] < dims[1]; ++i[1])
            for (i[2] = 0; i[2] < dims[2]; ++i[2])
                for (i[3] = 0; i[3] < dims[3]; ++i[3])
                    for (i[4] = 0; i[4] < dims[4]; ++i[4]) fn(i);
}

// All elements in row-major order.
std::vector<double> read(const Tensor& t, const void* data, bool to_tf32) {
    std::vector<double> values;
    values.reserve(static_cast<size_t>(t.count()));
    for_each(t.dims, [&](const Dims5& i) {
        const double v = element(data, t.type, t.at(i));
        values.push_back(to_tf32 && t.type == CUDA_R_32F ? rounded_to_tf32(static_cast<float>(v)) : v);
    });
    return values;
}
size_t row_major(const Dims5& dims, const Dims5& i) {
    int64_t at = 0;
    for (size_t d = 0; d < kDims; ++d) at = at * dims[d] + i[d];
    return static_cast<size_t>(at);
}

// Every product of the convolution, added to where its direction wants it.
std::vector<double> convolved(const Asked& a, const std::vector<double>& x, const std::vector<double>& w, const std::vector<double>& y) {
    std::vector<double> result(static_cast<size_t>(a.result().count()));
    const int64_t channels = a.w.dims[1], filters = a.w.dims[0] / a.groups();
    for_each(a.y.dims, [&](const Dims5& o) {
        const size_t at_y = row_major(a.y.dims, o);
        const int64_t group = o[1] / filters;
        double sum = 0;
        for (int64_t c = 0; c < channels; ++c)
            for (int64_t k0 = 0; k0 < a.w.dims[2]; ++k0)
                for (int64_t k1 = 0; k1 < a.w.dims[3]; ++k1) {
                    const int64_t i0 = o[2] * a.stride[0] - a.pad[0] + k0 * a.dilation[0],
                                  i1 = o[3] * a.stride[1] - a.pad[1] + k1 * a.dilation[1];
                    if (i0 < 0 || i0 >= a.x.dims[2] || i1 < 0 || i1 >= a.x.dims[3]) continue;
                    const size_t line_x = row_major(a.x.dims, {o[0], group * channels + c, i0, i1, 0}),
                                 line_w = row_major(a.w.dims, {o[1], c, k0, k1, 0});
                    for (int64_t k2 = 0; k2 < a.w.dims[4]; ++k2) {
                        const int64_t i2 = o[4] * a.stride[2] - a.pad[2] + k2 * a.dilation[2];
                        if (i2 < 0 || i2 >= a.x.dims[4]) continue;
                        const size_t at_x = line_x + static_cast<size_t>(i2), at_w = line_w + static_cast<size_t>(k2);
                        if (a.direction == Direction::Forward) sum += x[at_x] * w[at_w];
                        if (a.direction == Direction::GradInput) result[at_x] += y[at_y] * w[at_w];
                        if (a.direction == Direction::GradWeight) result[at_w] += y[at_y] * x[at_x];
                    }
                }
        if (a.direction == Direction::Forward) result[at_y] = sum;
    });
    return result;
}

using Memory = std::map<int64_t, void*>;

void compute(const Asked& asked, const Engine& engine, const Memory& memory) {
    const bool to_tf32 = std::count(engine.notes.begin(), engine.notes.end(), CUDNN_NUMERICAL_NOTE_TENSOR_CORE) > 0;
    const auto values = [&](const Tensor& t, Direction made_by) {
        return asked.direction == made_by ? std::vector<double>() : read(t, memory.at(t.uid), to_tf32);
    };
    auto result = convolved(asked, values(asked.x, Direction::GradInput), values(asked.w, Direction::GradWeight),
                            values(asked.y, Direction::Forward));
    for (const Pointwise& pass : asked.behind)
        for_each(pass.y.dims, [&](const Dims5& i) {
            double& v = result[row_major(pass.y.dims, i)];
            if (pass.add)
                v += element(memory.at(pass.b.uid), pass.b.type, pass.b.at({0, i[1], 0, 0, 0}));
            else if (v < 0)  // a NaN stays
                v *= pass.slope;
        });
    const Tensor& to = asked.behind.empty() ? asked.result() : asked.behind.back().y;
    for_each(to.dims, [&](const Dims5& i) {
        const double v = result[row_major(to.dims, i)];
        set_element(memory.at(to.uid), to.type, to.at(i), engine.right ? v : 1.5 * v + 1);
    });
}

}  // namespace

size_t cudnnGetVersion() { return 91900; }

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
    *handle = new StandInCudnn;
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
    delete handle;
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

const char* cudnnGetErrorString(cudnnStatus_t status) {
    switch (status) {
        case CUDNN_STATUS_SUCCESS: return "CUDNN_STATUS_SUCCESS";
        case CUDNN_STATUS_BAD_PARAM: return "CUDNN_STATUS_BAD_PARAM";
        case CUDNN_STATUS_NOT_SUPPORTED: return "CUDNN_STATUS_NOT_SUPPORTED";
        case CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED: return "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED";
        case CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED: return "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED";
    }
    return "unknown";
}
void cudnnGetLastErrorString(char* text, size_t most) { std::snprintf(text, most, "%s", last_error.c_str()); }

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* descriptor) {
    *descriptor = new Descriptor(std::make_shared<Held>(Held{.type = type}));
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
    delete static_cast<Descriptor*>(descriptor);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void* values) {
    return said([&] {
        const Descriptor& d = held(descriptor);
        require(!d->finished, "a descriptor that is finished does not change", CUDNN_STATUS_BAD_PARAM);
        Value value{type, {}, {}};
        if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
            for (int64_t i = 0; i < count; ++i) value.descriptors.push_back(held(static_cast<const cudnnBackendDescriptor_t*>(values)[i]));
        } else {
            const auto* const bytes = static_cast<const std::byte*>(values);
            value.bytes.assign(bytes, bytes + static_cast<size_t>(count) * size_of(type));
        }
        d->values[name] = std::move(value);
    });
}

// Descriptors are given in those that the caller has made for them.
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t most, int64_t* count, void* values) {
    return said([&] {
        const Descriptor& d = held(descriptor);
        require(d->finished, "a descriptor that is not finished says nothing", CUDNN_STATUS_BAD_PARAM);
        if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS) d->values[name].descriptors = configurations(d);
        const Value& value = value_of(d, name);
        if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
            *count = static_cast<int64_t>(value.descriptors.size());
            for (int64_t i = 0; i < std::min(*count, most); ++i)
                held(static_cast<cudnnBackendDescriptor_t*>(values)[i]) = value.descriptors[static_cast<size_t>(i)];
            return;
        }
        require(type == value.type, "an attribute of another type", CUDNN_STATUS_BAD_PARAM);
        *count = static_cast<int64_t>(value.bytes.size() / size_of(type));
        std::copy_n(value.bytes.begin(), std::min(*count, most) * static_cast<int64_t>(size_of(type)), static_cast<std::byte*>(values));
    });
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
    return said([&] {
        const Descriptor& d = held(descriptor);
        switch (d->type) {
            case CUDNN_BACKEND_TENSOR_DESCRIPTOR: tensor_of(d); break;
            case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR: asked_of(d); break;
            case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR: require(!configurations(d).empty(), "no engine supports the graph"); break;
            case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
                d->engine = part_of(d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)->engine;
                d->values[CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE] = value(CUDNN_TYPE_INT64, static_cast<int64_t>(engine_of(d).workspace));
                break;
            default: break;
        }
        d->finished = true;
    });
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
    return said([&] {
        const Descriptor &p = held(plan), &with = held(pack);
        require(p->finished && with->finished, "a plan or its memory is not finished", CUDNN_STATUS_BAD_PARAM);
        const Engine& engine = engine_of(p);
        const Descriptor& config = part_of(p, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
        const Asked asked = asked_of(part_of(config, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH));
        const auto uids = list_of<int64_t>(with, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
        const auto pointers = list_of<void*>(with, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
        void* const workspace = one_of<void*>(with, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
        require(uids.size() == pointers.size(), "as many pointers as names", CUDNN_STATUS_BAD_PARAM);
        require(engine.workspace == 0 || place_of(workspace) == Place::Device, "there is no workspace", CUDNN_STATUS_BAD_PARAM);
        Memory memory;
        for (size_t i = 0; i < uids.size(); ++i) {
            require(place_of(pointers[i]) == Place::Device, "memory of another place", CUDNN_STATUS_BAD_PARAM);
            require(reinterpret_cast<uintptr_t>(pointers[i]) % 16 == 0, "tensors are aligned to 16 bytes", CUDNN_STATUS_BAD_PARAM);
            memory[uids[i]] = pointers[i];
        }
        for (const Tensor* t : {&asked.x, &asked.w, &asked.y})
            require(t->is_virtual || memory.count(t->uid) > 0, "a tensor without memory", CUDNN_STATUS_BAD_PARAM);
        enqueue(handle->stream, [asked, &engine, memory, workspace] {
            if (engine.workspace > 0) std::memset(workspace, 0xFF, engine.workspace);
            compute(asked, engine, memory);
        });
    });
}
