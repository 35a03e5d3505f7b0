#include "kernels/cuda/recording.h"

namespace convoy::cuda {

namespace {

class Recording : public Kernel {
  public:
    Recording(Device& device, cudaGraph_t graph, bool reads_context) : device_(device), graph_(graph), reads_context_(reads_context) {
        try {
            check(cudaGraphInstantiate(&executable_, graph_, 0), "cudaGraphInstantiate");
            check(cudaGraphUpload(executable_, device_.stream()), "cudaGraphUpload");
        } catch (...) {
            destroy();
            throw;
        }
    }
    ~Recording() override {
        cudaStreamSynchronize(device_.stream());
        destroy();
    }
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;

    void run(const StepContext& context) override {
        device_.use();
        if (reads_context_) device_.set_context(context);
        check(cudaGraphLaunch(executable_, device_.stream()), "cudaGraphLaunch");
    }

  private:
    void destroy() {
        if (executable_) cudaGraphExecDestroy(executable_);
        cudaGraphDestroy(graph_);
    }

    Device& device_;
    cudaGraph_t graph_;
    cudaGraphExec_t executable_ = nullptr;
    bool reads_context_;
};

}  // namespace

std::unique_ptr<Kernel> record(Device& device, std::span<Kernel* const> kernels) {
    device.begin_recording();
    try {
        for (Kernel* kernel : kernels) kernel->run({});
    } catch (...) {
        device.abandon_recording();
        throw;
    }
    cudaGraph_t graph = device.end_recording();
    return std::make_unique<Recording>(device, graph, device.context_wanted());
}

}  // namespace convoy::cuda
