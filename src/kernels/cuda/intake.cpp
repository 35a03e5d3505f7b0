#include "kernels/cuda/intake.h"

#include <cstring>

#include "base/error.h"
#include "kernels/cuda/copy.h"

namespace convoy::cuda {

namespace {

constexpr size_t kPage = 4096;
constexpr size_t kLeast = 64 * 1024;  // below that a copy by the host costs less than a lock

class Event {
  public:
    Event() { check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreate"); }
    ~Event() { cudaEventDestroy(event_); }
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;

    void record(cudaStream_t stream) { check(cudaEventRecord(event_, stream), "cudaEventRecord"); }
    void hold(cudaStream_t stream) const { check(cudaStreamWaitEvent(stream, event_, 0), "cudaStreamWaitEvent"); }
    void wait() const { check(cudaEventSynchronize(event_), "cudaEventSynchronize"); }

  private:
    cudaEvent_t event_ = nullptr;
};

class DeviceIntake : public Intake {
  public:
    DeviceIntake(Device& device, CopyStream& copies, const Operand& operand)
        : device_(device),
          copies_(copies),
          operand_(operand),
          bytes_(static_cast<size_t>(numel(operand.desc.shape) * size_of(operand.desc.dtype))),
          staged_(device, static_cast<int64_t>(bytes_)) {}

    ~DeviceIntake() override {
        cudaStreamSynchronize(copies_.get());
        if (pinned_) cudaFreeHost(pinned_);
    }

    std::span<std::byte> memory() override {
        device_.use();
        if (!pinned_) check(cudaMallocHost(reinterpret_cast<void**>(&pinned_), std::max<size_t>(bytes_, 1)), "cudaMallocHost");
        sent_.wait();
        return {pinned_, bytes_};
    }

    void send(std::span<const std::byte> src) override {
        CONVOY_CHECK(src.size() == bytes_, "{} bytes are sent to an operand of {}", src.size(), bytes_);
        if (bytes_ == 0) return;
        device_.use();
        const std::byte* from = src.data();
        if (from != pinned_ && !is_locked(from)) {
            std::memcpy(memory().data(), from, bytes_);
            from = pinned_;
        }
        taken_.hold(copies_.get());  // what was sent before
        check(cudaMemcpyAsync(staged_.data(), from, bytes_, cudaMemcpyHostToDevice, copies_.get()), "cudaMemcpyAsync to the device");
        sent_.record(copies_.get());
    }

    void take() override {
        if (bytes_ == 0) return;
        device_.use();
        sent_.hold(device_.stream());
        start_copy(device_, {staged_.data(), operand_.desc, Layout::plain()}, operand_);
        taken_.record(device_.stream());
    }

  private:
    static bool is_locked(const std::byte* memory) {
        cudaPointerAttributes attributes{};
        if (cudaPointerGetAttributes(&attributes, memory) == cudaSuccess) return attributes.type == cudaMemoryTypeHost;
        cudaGetLastError();
        return false;
    }

    Device& device_;
    CopyStream& copies_;
    Operand operand_;
    size_t bytes_;
    DeviceMemory staged_;  // as the host has it
    std::byte* pinned_ = nullptr;
    Event sent_, taken_;
};

class LockedPages : public PageLock {
  public:
    LockedPages(Device& device, std::byte* memory) : device_(device), memory_(memory) {}
    // What was sent and never taken may still be on its way: a run can end with a batch ahead.
    ~LockedPages() override {
        cudaSetDevice(device_.number());
        cudaDeviceSynchronize();
        cudaHostUnregister(memory_);
    }
    LockedPages(const LockedPages&) = delete;
    LockedPages& operator=(const LockedPages&) = delete;

  private:
    Device& device_;
    std::byte* memory_;
};

}  // namespace

CopyStream::CopyStream(Device& device) : device_(device) {
    device.use();
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
}

CopyStream::~CopyStream() {
    cudaSetDevice(device_.number());
    cudaStreamSynchronize(stream_);
    cudaStreamDestroy(stream_);
}

std::unique_ptr<Intake> make_intake(Device& device, CopyStream& copies, const Operand& operand) {
    device.use();
    return std::make_unique<DeviceIntake>(device, copies, operand);
}

std::unique_ptr<PageLock> lock_pages(Device& device, std::span<std::byte> memory) {
    if (memory.size() < kLeast || reinterpret_cast<uintptr_t>(memory.data()) % kPage != 0) return nullptr;
    device.use();
    const size_t whole = (memory.size() + kPage - 1) / kPage * kPage;
    if (cudaHostRegister(memory.data(), whole, cudaHostRegisterDefault) != cudaSuccess) {
        cudaGetLastError();
        return nullptr;
    }
    return std::make_unique<LockedPages>(device, memory.data());
}

}  // namespace convoy::cuda
