// Streams, events and recordings. Nothing that is put into a stream runs until somebody waits for it, and then no more than that.
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/stand_in/runtime.h"

using stand_in::Work;

namespace {

struct Queue {
    std::deque<Work> waiting;
    uint64_t put = 0, done = 0;
};

}  // namespace

struct StandInGraph {
    std::vector<Work> work;
    bool broken = false;
};
struct StandInStream {
    std::shared_ptr<Queue> queue = std::make_shared<Queue>();
    std::unique_ptr<StandInGraph> capture;  // while what comes is kept instead of put
};
struct StandInEvent {
    std::shared_ptr<Queue> queue;  // where it was recorded; none: it was not
    uint64_t at = 0;
    std::shared_ptr<double> ms = std::make_shared<double>(0);
};

namespace stand_in {

namespace {

// Of everything here: ranks may be threads.
std::recursive_mutex& mutex() {
    static std::recursive_mutex all;
    return all;
}

std::map<cudaStream_t, std::weak_ptr<Queue>>& streams() {
    static std::map<cudaStream_t, std::weak_ptr<Queue>> all;
    return all;
}

thread_local cudaStream_t captured = nullptr;
thread_local cudaError_t last_error = cudaSuccess;
std::string fault;  // of a kernel: nothing works after it
double clock_ms = 0;
std::map<const void*, int>& allowed_shared_memory() {
    static std::map<const void*, int> bytes;
    return bytes;
}

void run(Queue& queue, uint64_t until) {
    while (queue.done < until && !queue.waiting.empty()) {
        const Work work = std::move(queue.waiting.front());
        queue.waiting.pop_front();
        work();
        ++queue.done;
    }
}

// Between a millionth and a thousandth of a second, never the same twice.
double some_ms() {
    static uint64_t draws = 0;
    return 1e-3 + static_cast<double>(mixed(++draws) % 1000) * 1e-3;
}

void run_kernel(const cudaLaunchConfig_t& config, const Work& kernel) {
    static uint64_t launches = 0;
    if (!fault.empty()) return;
    fault = run_grid(config.gridDim, config.blockDim, kernel, ++launches % 2 == 0);
}

}  // namespace

Guard::Guard() : lock_(mutex()) {}

cudaError_t returned(cudaError_t error) {
    if (error == cudaSuccess && !fault.empty()) error = cudaErrorLaunchFailure;
    if (error != cudaSuccess) last_error = error;
    return error;
}

// A stream that is captured is spoilt by it, as the real one is.
bool illegal_now() {
    if (captured) captured->capture->broken = true;
    return captured != nullptr;
}

cudaError_t enqueue(cudaStream_t stream, Work work) {
    const Guard guard;
    if (!stream) return returned(cudaErrorInvalidValue);  // this backend has streams of its own
    if (stream->capture) {
        stream->capture->work.push_back(std::move(work));
        return returned(cudaSuccess);
    }
    stream->queue->waiting.push_back([work = std::move(work)] {
        work();
        clock_ms += some_ms();
    });
    ++stream->queue->put;
    return returned(cudaSuccess);
}

void finish(cudaStream_t stream) { run(*stream->queue, stream->queue->put); }

void finish_all() {
    for (const auto& [stream, queue] : streams())
        if (const auto held = queue.lock()) run(*held, held->put);
}

cudaError_t launch(const cudaLaunchConfig_t& config, const void* kernel, size_t parameter_bytes, Work work) {
    constexpr unsigned kMostThreads = 1024, kMostBlocks = 65535;
    constexpr size_t kMostParameters = 32764, kMostShared = 48 << 10;
    const Guard guard;
    const dim3 &grid = config.gridDim, &block = config.blockDim;
    const uint64_t threads = uint64_t{block.x} * block.y * block.z;
    if (threads == 0 || threads > kMostThreads || block.z > 64 || grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > 0x7fffffffu ||
        grid.y > kMostBlocks || grid.z > kMostBlocks)
        return returned(cudaErrorInvalidConfiguration);
    const auto allowed = allowed_shared_memory().find(kernel);
    const size_t shared = allowed == allowed_shared_memory().end() ? kMostShared : static_cast<size_t>(allowed->second);
    if (parameter_bytes > kMostParameters || config.dynamicSmemBytes > std::max(shared, kMostShared))
        return returned(cudaErrorInvalidValue);
    return enqueue(config.stream, [config, work = std::move(work)] { run_kernel(config, work); });
}

cudaError_t allow_shared_memory(const void* kernel, int bytes) {
    constexpr int kMost = 227 << 10;
    const Guard guard;
    if (bytes < 0 || bytes > kMost) return returned(cudaErrorInvalidValue);
    allowed_shared_memory()[kernel] = bytes;
    return returned(cudaSuccess);
}

uint64_t mixed(uint64_t value) {
    value += 0x9e3779b97f4a7c15u;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
    value = (value ^ value >> 27) * 0x94d049bb133111ebu;
    return value ^ value >> 31;
}

}  // namespace stand_in

using namespace stand_in;

cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }

const char* cudaGetErrorString(cudaError_t error) {
    switch (error) {
        case cudaSuccess: return "no error";
        case cudaErrorInvalidValue: return "invalid argument";
        case cudaErrorMemoryAllocation: return "out of memory";
        case cudaErrorInvalidConfiguration: return "invalid configuration argument";
        case cudaErrorStubLibrary: return "CUDA driver is a stub library";
        case cudaErrorNoDevice: return "no CUDA-capable device is detected";
        case cudaErrorInvalidDevice: return "invalid device ordinal";
        case cudaErrorLaunchFailure: return fault.c_str();
        case cudaErrorStreamCaptureUnsupported: return "operation not permitted when stream is capturing";
    }
    return "unknown error";
}

const char* cudaGetErrorName(cudaError_t error) {
    switch (error) {
        case cudaSuccess: return "cudaSuccess";
        case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
        case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
        case cudaErrorInvalidConfiguration: return "cudaErrorInvalidConfiguration";
        case cudaErrorStubLibrary: return "cudaErrorStubLibrary";
        case cudaErrorNoDevice: return "cudaErrorNoDevice";
        case cudaErrorInvalidDevice: return "cudaErrorInvalidDevice";
        case cudaErrorLaunchFailure: return "cudaErrorLaunchFailure";
        case cudaErrorStreamCaptureUnsupported: return "cudaErrorStreamCaptureUnsupported";
    }
    return "cudaErrorUnknown";
}

cudaError_t cudaDeviceSynchronize() {
    const Guard guard;
    if (illegal_now()) return returned(cudaErrorStreamCaptureUnsupported);
    finish_all();
    return returned(cudaSuccess);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
    const Guard guard;
    *stream = new StandInStream;
    streams()[*stream] = (*stream)->queue;
    return returned(cudaSuccess);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    const Guard guard;
    finish(stream);
    streams().erase(stream);
    delete stream;
    return returned(cudaSuccess);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    const Guard guard;
    if (illegal_now()) return returned(cudaErrorStreamCaptureUnsupported);
    finish(stream);
    return returned(cudaSuccess);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
    const Guard guard;
    if (stream->capture) {  // streams that join a capture are more than this backend has
        stream->capture->broken = true;
        return returned(cudaErrorStreamCaptureUnsupported);
    }
    if (!event->queue) return returned(cudaSuccess);
    return enqueue(stream, [queue = event->queue, at = event->at] { run(*queue, at); });
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
    *event = new StandInEvent;
    return returned(cudaSuccess);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    delete event;
    return returned(cudaSuccess);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    const Guard guard;
    if (stream->capture) {
        stream->capture->broken = true;
        return returned(cudaErrorStreamCaptureUnsupported);
    }
    event->ms = std::make_shared<double>(0);
    event->queue = stream->queue;
    const cudaError_t status = enqueue(stream, [ms = event->ms] { *ms = clock_ms; });
    event->at = stream->queue->put;
    return status;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    const Guard guard;
    if (illegal_now()) return returned(cudaErrorStreamCaptureUnsupported);
    if (event->queue) run(*event->queue, event->at);
    return returned(cudaSuccess);
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t begin, cudaEvent_t end) {
    const Guard guard;
    for (const cudaEvent_t event : {begin, end})
        if (!event->queue || event->queue->done < event->at) return returned(cudaErrorInvalidValue);
    *ms = static_cast<float>(*end->ms - *begin->ms);
    return returned(cudaSuccess);
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
    const Guard guard;
    if (captured || stream->capture) return returned(cudaErrorInvalidValue);
    stream->capture = std::make_unique<StandInGraph>();
    captured = stream;
    return returned(cudaSuccess);
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
    const Guard guard;
    *graph = nullptr;
    if (!stream->capture) return returned(cudaErrorInvalidValue);
    captured = nullptr;
    const auto made = std::move(stream->capture);
    if (made->broken) return returned(cudaErrorStreamCaptureUnsupported);
    *graph = new StandInGraph(*made);
    return returned(cudaSuccess);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned) {
    *executable = new StandInGraph(*graph);
    return returned(cudaSuccess);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return returned(cudaSuccess); }

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
    return enqueue(stream, [work = executable->work] {
        for (const Work& each : work) each();
    });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
    delete executable;
    return returned(cudaSuccess);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    delete graph;
    return returned(cudaSuccess);
}
