// cuDNN's stand-in: its calls, and a few engines that differ in what they support and how they may be used.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/cuda/stand_in/convolve.h"
#include "kernels/cuda/stand_in/stand_in.h"

using namespace stand_in;
using namespace stand_in::cudnn;

struct StandInCudnn {
    cudaStream_t stream = nullptr;
};

namespace {

thread_local std::string last_error;

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
Arithmetic arithmetic_of(const Engine& engine) {
    return {std::count(engine.notes.begin(), engine.notes.end(), CUDNN_NUMERICAL_NOTE_TENSOR_CORE) > 0, engine.right};
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
            compute(asked, arithmetic_of(engine), memory);
        });
    });
}
