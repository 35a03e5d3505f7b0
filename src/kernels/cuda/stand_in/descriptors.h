// cuDNN's descriptors, which hold what they are given.
#pragma once

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <cudnn.h>

namespace stand_in::cudnn {

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

struct Refusal {
    cudnnStatus_t status;
    std::string why;
};
inline void require(bool holds, const char* why, cudnnStatus_t status = CUDNN_STATUS_NOT_SUPPORTED) {
    if (!holds) throw Refusal{status, why};
}
inline Descriptor& held(cudnnBackendDescriptor_t raw) { return *static_cast<Descriptor*>(raw); }

inline size_t size_of(cudnnBackendAttributeType_t type) {
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

inline const Value& value_of(const Descriptor& d, cudnnBackendAttributeName_t name) {
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
inline const Descriptor& part_of(const Descriptor& d, cudnnBackendAttributeName_t name) {
    const auto& list = value_of(d, name).descriptors;
    require(list.size() == 1 && list[0]->finished, "a descriptor is missing or not finished", CUDNN_STATUS_BAD_PARAM);
    return list[0];
}

}  // namespace stand_in::cudnn
