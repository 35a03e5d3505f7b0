#include "comm/nccl/lane_stream.h"

#include <new>

#include "comm/nccl/mark.h"

namespace convoy {

namespace {

volatile uint64_t* word_of(std::atomic<uint64_t>& mark) { return reinterpret_cast<volatile uint64_t*>(&mark); }

}  // namespace

StreamEvent::StreamEvent() { check_cuda(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreate"); }

StreamEvent::~StreamEvent() { cudaEventDestroy(event_); }

void StreamEvent::record(cudaStream_t stream) { check_cuda(cudaEventRecord(event_, stream), "cudaEventRecord"); }

void StreamEvent::wait(cudaStream_t stream) const { check_cuda(cudaStreamWaitEvent(stream, event_, 0), "cudaStreamWaitEvent"); }

void StreamEvent::order(cudaStream_t earlier, cudaStream_t later) {
    record(earlier);
    wait(later);
}

// Traffic goes before computation where both want the device: what waits for it waits on several of them.
LaneStream::LaneStream() {
    int lowest = 0, highest = 0;
    check_cuda(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "cudaDeviceGetStreamPriorityRange");
    check_cuda(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, highest), "cudaStreamCreate");
    void* host = nullptr;
    check_cuda(cudaHostAlloc(&host, sizeof(DeviceMarks), cudaHostAllocMapped), "cudaHostAlloc");
    marks_ = new (host) DeviceMarks;
    check_cuda(cudaMalloc(reinterpret_cast<void**>(&counters_), 2 * sizeof(uint64_t)), "cudaMalloc");
    check_cuda(cudaMemset(counters_, 0, 2 * sizeof(uint64_t)), "cudaMemset");
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

LaneStream::~LaneStream() {
    if (stream_) cudaStreamSynchronize(stream_);
    if (counters_) cudaFree(counters_);
    if (marks_) cudaFreeHost(marks_);
    if (stream_) cudaStreamDestroy(stream_);
}

void LaneStream::mark_begun() {
    start_mark(counters_, word_of(marks_->begun), stream_);
    check_cuda(cudaGetLastError(), "mark");
}

void LaneStream::mark_done() {
    start_mark(counters_ + 1, word_of(marks_->done), stream_);
    check_cuda(cudaGetLastError(), "mark");
}

}  // namespace convoy
