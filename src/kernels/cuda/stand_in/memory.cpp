// The device, its memory and the host's locked pages.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/cuda/stand_in/runtime.h"

namespace stand_in {

namespace {

constexpr size_t kTotal = size_t{3} << 30;
constexpr int kVersion = 13000;

struct Block {
    size_t bytes;
    Place place;
    bool owned;  // else pages of the host's that were locked
};

std::map<const std::byte*, Block>& blocks() {
    static std::map<const std::byte*, Block> all;
    return all;
}
size_t in_use = 0;

// The block around a range; null: it is not inside one.
const Block* around(const void* memory, size_t bytes) {
    const auto* const at = static_cast<const std::byte*>(memory);
    auto next = blocks().upper_bound(at);
    if (next == blocks().begin()) return nullptr;
    const auto& [begin, block] = *--next;
    return at + bytes <= begin + block.bytes ? &block : nullptr;
}

cudaError_t allocate(void** memory, size_t bytes, Place place) {
    const Guard guard;
    *memory = nullptr;
    if (illegal_now()) return returned(cudaErrorStreamCaptureUnsupported);
    if (bytes == 0) return returned(cudaSuccess);
    constexpr size_t kAlignment = 512;
    const size_t whole = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    if (place == Place::Device && in_use + whole > kTotal) return returned(cudaErrorMemoryAllocation);
    // Just as large as it was asked for, so that a sanitizer sees what lies behind it.
    if (posix_memalign(memory, kAlignment, bytes) != 0) return returned(cudaErrorMemoryAllocation);
    std::memset(*memory, 0xFF, bytes);
    blocks()[static_cast<std::byte*>(*memory)] = {bytes, place, true};
    if (place == Place::Device) in_use += whole;
    return returned(cudaSuccess);
}

cudaError_t release(void* memory, Place place, bool owned) {
    const Guard guard;
    if (!memory) return returned(cudaSuccess);
    if (illegal_now()) return returned(cudaErrorStreamCaptureUnsupported);
    const auto at = blocks().find(static_cast<std::byte*>(memory));
    if (at == blocks().end() || at->second.place != place || at->second.owned != owned) return returned(cudaErrorInvalidValue);
    finish_all();
    if (place == Place::Device) in_use -= (at->second.bytes + 511) / 512 * 512;
    blocks().erase(at);
    if (owned) std::free(memory);
    return returned(cudaSuccess);
}

// Whether a copy of this kind may go from here to there.
bool fits(void* dst, const void* src, size_t bytes, cudaMemcpyKind kind) {
    const auto is_on_device = [&](const void* memory) {
        const Block* const block = around(memory, bytes);
        return block && block->place == Place::Device;
    };
    const bool to = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice,
               from = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    return is_on_device(dst) == to && is_on_device(src) == from;
}

}  // namespace

Place place_of(const void* memory) {
    const Guard guard;
    const Block* const block = around(memory, 1);
    return block ? block->place : Place::Unknown;
}

double element(const void* data, cudaDataType type, int64_t index) {
    switch (type) {
        case CUDA_R_64F: return static_cast<const double*>(data)[index];
        case CUDA_R_16F: return __half2float(static_cast<const __half*>(data)[index]);
        case CUDA_R_16BF: return __bfloat162float(static_cast<const __nv_bfloat16*>(data)[index]);
        default: return static_cast<const float*>(data)[index];
    }
}

void set_element(void* data, cudaDataType type, int64_t index, double value) {
    switch (type) {
        case CUDA_R_64F: static_cast<double*>(data)[index] = value; break;
        case CUDA_R_16F: static_cast<__half*>(data)[index] = __float2half_rn(static_cast<float>(value)); break;
        case CUDA_R_16BF: static_cast<__nv_bfloat16*>(data)[index] = __float2bfloat16_rn(static_cast<float>(value)); break;
        default: static_cast<float*>(data)[index] = static_cast<float>(value);
    }
}

float rounded_to_tf32(float value) {
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7f800000u) == 0x7f800000u) return value;
    bits = (bits + 0x1000u) & 0xffffe000u;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

}  // namespace stand_in

using namespace stand_in;

cudaError_t cudaGetDeviceCount(int* count) {
    *count = 1;
    return returned(cudaSuccess);
}

cudaError_t cudaSetDevice(int device) { return returned(device == 0 ? cudaSuccess : cudaErrorInvalidDevice); }

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
    if (device != 0) return returned(cudaErrorInvalidDevice);
    *properties = {};
    std::snprintf(properties->name, sizeof properties->name, "a stand-in for a GPU");
    properties->totalGlobalMem = kTotal;
    properties->major = 9;
    return returned(cudaSuccess);
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
    std::snprintf(text, static_cast<size_t>(length), "00000000:00:%02d.0", device);
    return returned(cudaSuccess);
}

cudaError_t cudaDriverGetVersion(int* version) {
    *version = kVersion;
    return returned(cudaSuccess);
}
cudaError_t cudaRuntimeGetVersion(int* version) { return cudaDriverGetVersion(version); }

cudaError_t cudaMalloc(void** memory, size_t bytes) { return allocate(memory, bytes, Place::Device); }
cudaError_t cudaFree(void* memory) { return release(memory, Place::Device, true); }
cudaError_t cudaMallocHost(void** memory, size_t bytes) { return allocate(memory, bytes, Place::Pinned); }
cudaError_t cudaFreeHost(void* memory) { return release(memory, Place::Pinned, true); }

cudaError_t cudaHostRegister(void* memory, size_t bytes, unsigned) {
    const Guard guard;
    if (illegal_now()) return returned(cudaErrorStreamCaptureUnsupported);
    if (around(memory, 1)) return returned(cudaErrorInvalidValue);
    blocks()[static_cast<std::byte*>(memory)] = {bytes, Place::Pinned, false};
    return returned(cudaSuccess);
}

cudaError_t cudaHostUnregister(void* memory) { return release(memory, Place::Pinned, false); }

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* memory) {
    const Place place = place_of(memory);
    attributes->type = place == Place::Device   ? cudaMemoryTypeDevice
                       : place == Place::Pinned ? cudaMemoryTypeHost
                                                : cudaMemoryTypeUnregistered;
    return returned(cudaSuccess);
}

cudaError_t cudaMemGetInfo(size_t* available, size_t* total) {
    const Guard guard;
    *available = kTotal - in_use;
    *total = kTotal;
    return returned(cudaSuccess);
}

// By the default stream, which does not wait for those of this backend.
cudaError_t cudaMemcpy(void* dst, const void* src, size_t bytes, cudaMemcpyKind kind) {
    const Guard guard;
    if (illegal_now()) return returned(cudaErrorStreamCaptureUnsupported);
    if (!fits(dst, src, bytes, kind)) return returned(cudaErrorInvalidValue);
    std::memcpy(dst, src, bytes);
    return returned(cudaSuccess);
}

cudaError_t cudaMemcpyAsync(void* dst, const void* src, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
    const Guard guard;
    if (!fits(dst, src, bytes, kind)) return returned(cudaErrorInvalidValue);
    if (kind == cudaMemcpyHostToDevice && place_of(src) == Place::Unknown) {
        // Pages that are not locked are read before the call returns.
        const auto* const begin = static_cast<const std::byte*>(src);
        return enqueue(stream, [dst, held = std::vector<std::byte>(begin, begin + bytes)] {
            std::copy(held.begin(), held.end(), static_cast<std::byte*>(dst));
        });
    }
    const cudaError_t status = enqueue(stream, [dst, src, bytes] { std::memcpy(dst, src, bytes); });
    if (kind == cudaMemcpyDeviceToHost && place_of(dst) == Place::Unknown) finish(stream);
    return status;
}

cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
    const Guard guard;
    const Block* const block = around(memory, bytes);
    if (!block || block->place != Place::Device) return returned(cudaErrorInvalidValue);
    return enqueue(stream, [memory, value, bytes] { std::memset(memory, value, bytes); });
}
