// One GPU as this backend uses it: a stream in which everything runs in order, the handles of the libraries, and the step's context in its memory,
// where a recorded step reads it.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "kernels/backend.h"
#include "kernels/cuda/status.h"

namespace convoy::cuda {

class Device {
  public:
    // Error when there is no device of that number.
    explicit Device(int number);
    ~Device();
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

    // Makes it the calling thread's device. Every entry of the backend begins with it, because ranks may be threads.
    void use() const;
    cudaStream_t stream() const { return stream_; }
    cudnnHandle_t cudnn();  // made when first asked for
    cublasLtHandle_t blas();
    int number() const { return number_; }
    const std::string& name() const { return name_; }
    // The same wherever it is seen.
    const std::string& identity() const { return identity_; }
    // As the bus has it: "00000000:18:00.0".
    const std::string& bus_id() const { return bus_id_; }
    int64_t memory_bytes() const { return memory_bytes_; }
    int64_t free_bytes() const;
    // Counts what was allocated, or given back when negative.
    void count_allocated(int64_t bytes);
    int64_t allocated_most() const { return allocated_most_; }
    void synchronize() const;
    // What the libraries may take when they are first used: a round figure.
    int64_t library_bytes() const { return cudnn_ ? 0 : int64_t{256} << 20; }

    // The context that kernels read, in the device's memory; being asked for it while recording is noted.
    const StepContext* context();
    // Sets it, in the order of the stream.
    void set_context(const StepContext& context);

    // While recording, what is started is kept instead of run.
    void begin_recording();
    cudaGraph_t end_recording();
    void abandon_recording();
    bool recording() const { return recording_; }
    // Whether anything recorded since begin_recording() reads the context.
    bool context_wanted() const { return context_wanted_; }

  private:
    int number_;
    std::string name_, identity_, bus_id_;
    int64_t memory_bytes_ = 0;
    std::atomic<int64_t> allocated_ = 0, allocated_most_ = 0;
    cudaStream_t stream_ = nullptr;
    cudnnHandle_t cudnn_ = nullptr;
    cublasLtHandle_t blas_ = nullptr;
    StepContext* context_ = nullptr;
    bool recording_ = false, context_wanted_ = false;
};

// Devices that the driver shows; 0 with the reason in `why` when it shows none.
int device_count(std::string& why);
// Whether it shows none though there is one, or may be: a driver that is too old, or that fails.
bool driver_is_faulty();
// Why this build cannot use a device; nothing when it can.
std::string device_fault(int number);
// Why tests that need a device cannot run here; nothing when they can.
std::string why_no_device();
// "driver 13.0, runtime 13.0, cuDNN 9.19.0"
std::string describe_libraries();
// "NVIDIA H200, 139.8 GiB"
std::string describe_device(int number);
std::string bus_id_of(int number);

}  // namespace convoy::cuda
