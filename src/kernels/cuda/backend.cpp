// The cuda backend: memory of one GPU, kernels in one stream, and a step recorded as a CUDA graph.
#include <mutex>

#include "base/error.h"
#include "kernels/cuda/clock.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/family.h"
#include "kernels/cuda/memory.h"
#include "kernels/cuda/recording.h"
#include "kernels/cuda/target.h"
#include "kernels/device_clock.h"
#include "kernels/device_memory.h"
#include "kernels/energy_meter.h"
#include "kernels/registry.h"

namespace convoy {

namespace {

using cuda::Device;

class CudaBackend : public Backend, public HasDeviceMemory, public HasDeviceClock {
  public:
    explicit CudaBackend(int device) : device_(device), staging_(device_), meter_(device_.bus_id()) {}

    const Target& target() const override { return target_; }
    std::unique_ptr<Memory> allocate(int64_t bytes) override { return std::make_unique<cuda::DeviceMemory>(device_, bytes); }

    std::unique_ptr<Kernel> prepare(const KernelRequest& request) override {
        device_.use();
        for (const cuda::Family& family : cuda::families()) {
            if (request.algorithm.substr(0, request.algorithm.find(':')) != family.name) continue;
            for (const cuda::Case& each : family.cases)
                if (each.accepts(request.problem)) return each.prepare(request, device_);
        }
        CONVOY_CHECK(false, "the cuda backend was asked for {} by \"{}\"", text_of(request.problem), request.algorithm);
    }

    std::unique_ptr<Kernel> prepare_copy(const Operand& src, const Operand& dst) override {
        return make_kernel([this, src, dst](const StepContext&) { cuda::start_copy(device_, src, dst); });
    }

    void upload(const Tensor& src, const Operand& dst) override {
        check_host_copy(src, dst);
        if (src.bytes() == 0) return;
        const std::lock_guard lock(mutex_);
        device_.use();
        if (dst.layout.is_plain()) return staging_.to_device(src.data(), static_cast<std::byte*>(dst.data), src.bytes());
        const Operand plain{scratch(src.bytes()), dst.desc, Layout::plain()};
        staging_.to_device(src.data(), static_cast<std::byte*>(plain.data), src.bytes());
        cuda::start_copy(device_, plain, dst);
    }

    void download(const Operand& src, Tensor& dst) override {
        check_host_copy(dst, src);
        if (dst.bytes() == 0) return;
        const std::lock_guard lock(mutex_);
        device_.use();
        Operand plain = src;
        if (!src.layout.is_plain()) {
            plain = {scratch(dst.bytes()), src.desc, Layout::plain()};
            cuda::start_copy(device_, src, plain);
        }
        staging_.to_host(static_cast<const std::byte*>(plain.data), dst.data(), dst.bytes());
    }

    void synchronize() override {
        device_.use();
        device_.synchronize();
    }

    bool on_host() const override { return false; }
    std::unique_ptr<Kernel> record(std::span<Kernel* const> kernels) override {
        device_.use();
        return cuda::record(device_, kernels);
    }
    std::vector<double> time_each(std::span<Kernel* const> kernels, const StepContext& context) override {
        return cuda::time_each(device_, kernels, context);
    }
    DeviceMemoryUse memory_use() const override {
        const int64_t total = device_.memory_bytes();
        return {.allocated_most = device_.allocated_most(), .in_use = total - device_.free_bytes(), .total = total};
    }

    std::optional<DeviceEndpoint> endpoint() const override {
        return DeviceEndpoint{
            .number = device_.number(), .identity = device_.identity(), .name = device_.name(), .stream = device_.stream()};
    }
    Energy energy() const override { return meter_.read(); }

  private:
    static void check_host_copy(const Tensor& tensor, const Operand& operand) {
        CONVOY_CHECK(tensor.dtype() == operand.desc.dtype && tensor.shape() == operand.desc.shape,
                     "a host tensor {} of {} for an operand {} of {}", to_string(tensor.shape()), name_of(tensor.dtype()),
                     to_string(operand.desc.shape), name_of(operand.desc.dtype));
    }

    // Memory for a plain tensor on its way; what used it before comes first in the stream.
    void* scratch(int64_t bytes) {
        if (!scratch_ || scratch_->bytes() < bytes) {
            scratch_.reset();
            scratch_ = std::make_unique<cuda::DeviceMemory>(device_, bytes);
        }
        return scratch_->data();
    }

    Device device_;
    cuda::CudaTarget target_;
    std::mutex mutex_;  // traffic copies from threads of its own
    cuda::Staging staging_;
    std::unique_ptr<cuda::DeviceMemory> scratch_;
    EnergyMeter meter_;
};

std::vector<DeviceStatus> devices() {
    std::vector<DeviceStatus> list;
    std::string why;
    const int count = cuda::device_count(why);
    for (int number = 0; number < count; ++number)
        list.push_back({.name = cuda::describe_device(number), .bus_id = cuda::bus_id_of(number)});
    return list;
}

std::string why_not() {
    std::string why;
    return cuda::device_count(why) > 0 ? "" : why;
}

}  // namespace

BackendEntry cuda_entry() {
    const std::string why = why_not();
    return {
        {"cuda", why.empty(), why.empty() ? fmt::format("{}; {}", cuda::describe_device(0), cuda::describe_libraries()) : why, devices()},
        [](const BackendOptions& options) -> std::unique_ptr<Backend> {
            if (const std::string reason = why_not(); !reason.empty()) fail("the cuda backend is not ready: {}", reason);
            return std::make_unique<CudaBackend>(options.device);
        }};
}

}  // namespace convoy
