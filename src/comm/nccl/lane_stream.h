// A lane on a device: a stream, and counts of what has begun and finished in it.
#pragma once

#include "comm/device_watch.h"
#include "comm/nccl/nccl_calls.h"

namespace convoy {

// An event of a stream, without time.
class StreamEvent {
  public:
    StreamEvent();
    ~StreamEvent();
    StreamEvent(const StreamEvent&) = delete;
    StreamEvent& operator=(const StreamEvent&) = delete;
    // What is put into `later` from now on begins when what `earlier` holds now is done.
    void order(cudaStream_t earlier, cudaStream_t later);
    void record(cudaStream_t stream);
    void wait(cudaStream_t stream) const;

  private:
    cudaEvent_t event_ = nullptr;
};

class LaneStream {
  public:
    // On the calling thread's device.
    LaneStream();
    ~LaneStream();
    LaneStream(const LaneStream&) = delete;
    LaneStream& operator=(const LaneStream&) = delete;

    cudaStream_t stream() const { return stream_; }
    DeviceMarks& marks() { return *marks_; }
    // In the order of the stream.
    void mark_begun();
    void mark_done();

  private:
    cudaStream_t stream_ = nullptr;
    DeviceMarks* marks_ = nullptr;  // the host's memory, which the device writes
    uint64_t* counters_ = nullptr;  // the device's: begun, done
};

}  // namespace convoy
