// The device's memory, and the way between it and the host's.
#pragma once

#include <array>
#include <memory>

#include "kernels/cuda/device.h"

namespace convoy::cuda {

class DeviceMemory : public Memory {
  public:
    // Error says how much was asked for and how much is free when there is not enough.
    DeviceMemory(Device& device, int64_t bytes);
    ~DeviceMemory() override;
    DeviceMemory(const DeviceMemory&) = delete;
    DeviceMemory& operator=(const DeviceMemory&) = delete;

    std::byte* data() override { return data_; }
    int64_t bytes() const override { return bytes_; }
    void fill(uint8_t byte) override;

  private:
    Device& device_;
    std::byte* data_ = nullptr;
    int64_t bytes_;
};

// Copies between the host and the device through two pinned pieces, so that the host's side of one overlaps the device's side of the other.
class Staging {
  public:
    explicit Staging(Device& device) : device_(device) {}
    ~Staging();
    Staging(const Staging&) = delete;
    Staging& operator=(const Staging&) = delete;

    // In the order of the stream. The source may be changed when it returns, but the device may not have it yet.
    void to_device(const std::byte* src, std::byte* dst, int64_t bytes);
    // Waits until the host has it.
    void to_host(const std::byte* src, std::byte* dst, int64_t bytes);

  private:
    static constexpr int64_t kBytes = int64_t{8} << 20;
    struct Piece {
        std::byte* data = nullptr;
        cudaEvent_t free = nullptr;  // when the device no longer reads it
    };
    Piece& next();

    Device& device_;
    std::array<Piece, 2> pieces_;
    size_t turn_ = 0;
};

}  // namespace convoy::cuda
