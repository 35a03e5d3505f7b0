// The cuda backend: memory of one GPU, kernels in one stream, and a step recorded as a CUDA graph.
#include <algorithm>
#include <mutex>

#include "base/error.h"
#include "kernels/cuda/clock.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/family.h"
#include "kernels/cuda/intake.h"
#include "kernels/cuda/memory.h"
#include "kernels/cuda/recording.h"
#include "kernels/cuda/target.h"
#include "kernels/cuda/views.h"
#include "kernels/device_clock.h"
#include "kernels/device_memory.h"
#include "kernels/energy_meter.h"
#include "kernels/registry.h"
#include "program/key.h"

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
                if (each.accepts(request.problem)) return prepare(each, request);
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
        in_parts(dst, [&](const Operand& part, int64_t bytes, int64_t before) {
            const Operand plain{scratch(bytes), part.desc, Layout::plain()};
            staging_.to_device(src.data() + before, static_cast<std::byte*>(plain.data), bytes);
            cuda::start_copy(device_, plain, part);
        });
    }

    void download(const Operand& src, Tensor& dst) override {
        check_host_copy(dst, src);
        if (dst.bytes() == 0) return;
        const std::lock_guard lock(mutex_);
        device_.use();
        if (src.layout.is_plain()) return staging_.to_host(static_cast<const std::byte*>(src.data), dst.data(), dst.bytes());
        in_parts(src, [&](const Operand& part, int64_t bytes, int64_t before) {
            const Operand plain{scratch(bytes), part.desc, Layout::plain()};
            cuda::start_copy(device_, part, plain);
            staging_.to_host(static_cast<const std::byte*>(plain.data), dst.data() + before, bytes);
        });
    }

    std::unique_ptr<Intake> intake(const Operand& operand) override {
        if (!copies_) copies_ = std::make_unique<cuda::CopyStream>(device_);
        return cuda::make_intake(device_, *copies_, operand);
    }
    std::unique_ptr<PageLock> lock_pages(std::span<std::byte> memory) override { return cuda::lock_pages(device_, memory); }

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
        return {.allocated_most = device_.allocated_most(),
                .in_use = total - device_.free_bytes(),
                .total = total,
                .libraries = device_.library_bytes()};
    }

    std::optional<DeviceEndpoint> endpoint() const override {
        return DeviceEndpoint{
            .number = device_.number(), .identity = device_.identity(), .name = device_.name(), .stream = device_.stream()};
    }
    Energy energy() const override { return meter_.read(); }

  private:
    std::unique_ptr<Kernel> prepare(const cuda::Case& each, const KernelRequest& request) {
        try {
            return each.prepare(request, device_);
        } catch (const cuda::TooLarge& e) {
            fail("the cuda backend cannot compute {}: {}", key_of(request.problem), e.what());
        }
    }

    static void check_host_copy(const Tensor& tensor, const Operand& operand) {
        CONVOY_CHECK(tensor.dtype() == operand.desc.dtype && tensor.shape() == operand.desc.shape,
                     "a host tensor {} of {} for an operand {} of {}", to_string(tensor.shape()), name_of(tensor.dtype()),
                     to_string(operand.desc.shape), name_of(operand.desc.dtype));
    }

    // Calls fn(part, its bytes, bytes before it) for parts along the outermost dim, which every layout has in common: the memory to permute them in may be all
    // that a full GPU has left.
    template <class Fn>
    static void in_parts(const Operand& whole, const Fn& fn) {
        constexpr int64_t kMost = int64_t{32} << 20;
        const int64_t rows = whole.desc.shape[0], row = bytes_of(whole.desc.shape, whole.desc.dtype, whole.layout) / rows;
        const int64_t each = std::max<int64_t>(1, kMost / std::max<int64_t>(row, 1));
        for (int64_t first = 0; first < rows; first += each) {
            Operand part = whole;
            part.desc.shape[0] = std::min(each, rows - first);
            part.data = static_cast<std::byte*>(whole.data) + first * row;
            fn(part, part.desc.shape[0] * row, first * row);
        }
    }

    // Memory for plain parts on their way; what used it before comes first in the stream.
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
    std::unique_ptr<cuda::CopyStream> copies_;  // made when first asked for
    EnergyMeter meter_;
};

DeviceStatus status_of(int number) {
    try {
        return {.name = cuda::describe_device(number), .bus_id = cuda::bus_id_of(number), .fault = cuda::device_fault(number)};
    } catch (const Error& e) {
        return {.name = "unknown", .bus_id = "", .fault = e.what()};
    }
}

// Asks the driver only: nothing is started on a GPU for it.
BackendStatus status_here() {
    BackendStatus status{.name = "cuda", .ready = false, .types = {DType::f64, DType::f32, DType::tf32, DType::bf16}};
    const int count = cuda::device_count(status.detail);
    for (int number = 0; number < count; ++number) status.devices.push_back(status_of(number));
    const auto usable = [](const DeviceStatus& d) { return d.fault.empty(); };
    const auto first = std::find_if(status.devices.begin(), status.devices.end(), usable);
    status.ready = first != status.devices.end();
    if (status.ready)
        status.detail = fmt::format("{}; {}", first->name, cuda::describe_libraries());
    else if (count > 0)
        status.detail = status.devices[0].fault;
    status.faulty = !status.ready && (count > 0 || cuda::driver_is_faulty());
    return status;
}

}  // namespace

BackendEntry cuda_entry() {
    return {"cuda", status_here,
            [](const BackendOptions& options) -> std::unique_ptr<Backend> { return std::make_unique<CudaBackend>(options.device); }};
}

}  // namespace convoy
