#include "kernels/cuda/device.h"

#include <array>

#include "base/error.h"
#include "kernels/cuda/context.h"

namespace convoy::cuda {

namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

std::string version_text(int version, int major, int minor) { return fmt::format("{}.{}", version / major, version % major / minor); }

std::string uuid_text(const cudaUUID_t& uuid) {
    std::string text = "GPU-";
    for (const char c : uuid.bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
    return text;
}

}  // namespace

int device_count(std::string& why) {
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (status == cudaSuccess && count > 0) return count;
    cudaGetLastError();
    int driver = 0;
    cudaDriverGetVersion(&driver);
    const bool none = status == cudaSuccess || status == cudaErrorNoDevice;
    why = driver == 0 ? "no NVIDIA driver found"
          : none      ? "the driver shows no GPU (CUDA_VISIBLE_DEVICES may hide them)"
                      : cudaGetErrorString(status);
    return 0;
}

bool driver_is_faulty() {
    int count = 0, driver = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    cudaGetLastError();
    cudaDriverGetVersion(&driver);
    return driver > 0 && status != cudaSuccess && status != cudaErrorNoDevice && status != cudaErrorStubLibrary;
}

std::string device_fault(int number) {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, number), "cudaGetDeviceProperties");
    constexpr int kLeast = 9;
    if (properties.major >= kLeast) return "";
    return fmt::format("{} has compute capability {}.{}; this build has kernels for {}.0 and later", properties.name, properties.major,
                       properties.minor, kLeast);
}

std::string why_no_device() {
    std::string why;
    return device_count(why) == 0 ? why : device_fault(0);
}

std::string describe_device(int number) {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, number), "cudaGetDeviceProperties");
    return fmt::format("{}, {:.1f} GiB", properties.name, static_cast<double>(properties.totalGlobalMem) / kGiB);
}

std::string bus_id_of(int number) {
    std::array<char, 32> text{};
    check(cudaDeviceGetPCIBusId(text.data(), static_cast<int>(text.size()), number), "cudaDeviceGetPCIBusId");
    return text.data();
}

std::string describe_libraries() {
    int driver = 0, runtime = 0;
    check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
    check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
    const auto cudnn = static_cast<int>(cudnnGetVersion());
    return fmt::format("driver {}, runtime {}, cuDNN {}.{}", version_text(driver, 1000, 10), version_text(runtime, 1000, 10),
                       version_text(cudnn, 10000, 100), cudnn % 100);
}

Device::Device(int number) : number_(number) {
    std::string why;
    const int count = device_count(why);
    require(count > 0, "the cuda backend is not ready: {}", why);
    require(number >= 0 && number < count, "there is no GPU {}; this machine has {} (0 to {})", number, count, count - 1);
    const std::string fault = device_fault(number);
    require(fault.empty(), "the cuda backend cannot use GPU {}: {}", number, fault);
    use();
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, number), "cudaGetDeviceProperties");
    name_ = properties.name;
    bus_id_ = bus_id_of(number);
    identity_ = uuid_text(properties.uuid);
    memory_bytes_ = static_cast<int64_t>(properties.totalGlobalMem);
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
    check(cudaMalloc(reinterpret_cast<void**>(&context_), sizeof(StepContext)), "cudaMalloc of the step's context");
    set_context({});
}

Device::~Device() {
    cudaSetDevice(number_);
    if (stream_) cudaStreamSynchronize(stream_);
    if (cudnn_) cudnnDestroy(cudnn_);
    if (blas_) cublasLtDestroy(blas_);
    cudaFree(context_);
    if (stream_) cudaStreamDestroy(stream_);
}

void Device::use() const { check(cudaSetDevice(number_), "cudaSetDevice"); }

cudnnHandle_t Device::cudnn() {
    if (cudnn_) return cudnn_;
    check(cudnnCreate(&cudnn_), "cudnnCreate");
    check(cudnnSetStream(cudnn_, stream_), "cudnnSetStream");
    return cudnn_;
}

cublasLtHandle_t Device::blas() {
    if (!blas_) check(cublasLtCreate(&blas_), "cublasLtCreate");
    return blas_;
}

int64_t Device::free_bytes() const {
    use();
    size_t available = 0, total = 0;
    check(cudaMemGetInfo(&available, &total), "cudaMemGetInfo");
    return static_cast<int64_t>(available);
}

void Device::count_allocated(int64_t bytes) {
    const int64_t now = allocated_ += bytes;
    int64_t most = allocated_most_;
    while (now > most && !allocated_most_.compare_exchange_weak(most, now)) {
    }
}

void Device::synchronize() const { check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

const StepContext* Device::context() {
    context_wanted_ = true;
    return context_;
}

void Device::set_context(const StepContext& context) { start_context_write(context_, context, stream_); }

void Device::begin_recording() {
    check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    recording_ = true;
    context_wanted_ = false;
}

cudaGraph_t Device::end_recording() {
    recording_ = false;
    cudaGraph_t graph = nullptr;
    check(cudaStreamEndCapture(stream_, &graph), "cudaStreamEndCapture");
    return graph;
}

void Device::abandon_recording() {
    recording_ = false;
    cudaGraph_t graph = nullptr;
    cudaStreamEndCapture(stream_, &graph);
    if (graph) cudaGraphDestroy(graph);
    cudaGetLastError();
}

}  // namespace convoy::cuda
