#include "kernels/cuda/memory.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace convoy::cuda {

DeviceMemory::DeviceMemory(Device& device, int64_t bytes) : device_(device), bytes_(bytes) {
    if (bytes == 0) return;
    device.use();
    const cudaError_t status = cudaMalloc(reinterpret_cast<void**>(&data_), static_cast<size_t>(bytes));
    if (status == cudaErrorMemoryAllocation) {
        cudaGetLastError();
        const int64_t available = device.free_bytes();
        const auto gb = [](int64_t count) { return static_cast<double>(count) / 1e9; };
        const std::string lacking =
            bytes > available ? fmt::format("{:.2f} GB too little", gb(bytes - available)) : "no piece of it is as large";
        throw OutOfMemory(
            fmt::format("{} has {:.2f} GB free, but {:.2f} GB are needed: {}. A smaller batch or more micro-batches need less",
                        device.name(), gb(available), gb(bytes), lacking));
    }
    check(status, "cudaMalloc");
    device.count_allocated(bytes);
}

DeviceMemory::~DeviceMemory() {
    if (!data_) return;
    cudaStreamSynchronize(device_.stream());
    cudaFree(data_);
    device_.count_allocated(-bytes_);
}

void DeviceMemory::fill(uint8_t byte) {
    if (bytes_ == 0) return;
    device_.use();
    check(cudaMemsetAsync(data_, byte, static_cast<size_t>(bytes_), device_.stream()), "cudaMemsetAsync");
    device_.synchronize();
}

Staging::~Staging() {
    for (Piece& piece : pieces_) {
        if (piece.free) cudaEventDestroy(piece.free);
        if (piece.data) cudaFreeHost(piece.data);
    }
}

Staging::Piece& Staging::next() {
    Piece& piece = pieces_[turn_++ % pieces_.size()];
    if (!piece.data) {
        check(cudaMallocHost(reinterpret_cast<void**>(&piece.data), static_cast<size_t>(kBytes)), "cudaMallocHost");
        check(cudaEventCreateWithFlags(&piece.free, cudaEventDisableTiming), "cudaEventCreate");
    }
    check(cudaEventSynchronize(piece.free), "cudaEventSynchronize");
    return piece;
}

void Staging::to_device(const std::byte* src, std::byte* dst, int64_t bytes) {
    for (int64_t at = 0; at < bytes; at += kBytes) {
        const auto size = static_cast<size_t>(std::min(kBytes, bytes - at));
        Piece& piece = next();
        std::memcpy(piece.data, src + at, size);
        check(cudaMemcpyAsync(dst + at, piece.data, size, cudaMemcpyHostToDevice, device_.stream()), "cudaMemcpyAsync to the device");
        check(cudaEventRecord(piece.free, device_.stream()), "cudaEventRecord");
    }
}

void Staging::to_host(const std::byte* src, std::byte* dst, int64_t bytes) {
    for (int64_t at = 0; at < bytes; at += kBytes) {
        const auto size = static_cast<size_t>(std::min(kBytes, bytes - at));
        Piece& piece = next();
        check(cudaMemcpyAsync(piece.data, src + at, size, cudaMemcpyDeviceToHost, device_.stream()), "cudaMemcpyAsync to the host");
        device_.synchronize();
        std::memcpy(dst + at, piece.data, size);
    }
}

}  // namespace convoy::cuda
