#include "kernels/cuda/clock.h"

#include "kernels/cuda/launch.cuh"

namespace convoy::cuda {

namespace {

// Keeps the device busy for so many nanoseconds.
__global__ void hold(uint64_t ns) {
    const auto now = [] {
        uint64_t time = 0;
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));
        return time;
    };
    const uint64_t begin = now();
    while (now() - begin < ns) {
    }
}

class Events {
  public:
    explicit Events(size_t count) : events_(count) {
        for (cudaEvent_t& event : events_) check(cudaEventCreate(&event), "cudaEventCreate");
    }
    ~Events() {
        for (cudaEvent_t event : events_) cudaEventDestroy(event);
    }
    Events(const Events&) = delete;
    Events& operator=(const Events&) = delete;
    cudaEvent_t operator[](size_t i) const { return events_[i]; }

  private:
    std::vector<cudaEvent_t> events_;
};

}  // namespace

// The device is held until the host has started everything, so that no kernel waits for the host.
std::vector<double> time_each(Device& device, std::span<Kernel* const> kernels, const StepContext& context) {
    constexpr uint64_t kHost = 60'000;  // ns to start a kernel, with much to spare
    device.use();
    const Events events(kernels.size() + 1);
    launch(device, hold, dim3(1), dim3(1), kHost * (kernels.size() + 100));
    check(cudaEventRecord(events[0], device.stream()), "cudaEventRecord");
    for (size_t i = 0; i < kernels.size(); ++i) {
        kernels[i]->run(context);
        check(cudaEventRecord(events[i + 1], device.stream()), "cudaEventRecord");
    }
    device.synchronize();
    std::vector<double> seconds;
    for (size_t i = 0; i < kernels.size(); ++i) {
        float ms = 0;
        check(cudaEventElapsedTime(&ms, events[i], events[i + 1]), "cudaEventElapsedTime");
        seconds.push_back(static_cast<double>(ms) * 1e-3);
    }
    return seconds;
}

}  // namespace convoy::cuda
