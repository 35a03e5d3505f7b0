// What the parts of the runtime's stand-in share.
#pragma once

#include <mutex>

#include "kernels/cuda/stand_in/stand_in.h"

namespace stand_in {

using Work = std::function<void()>;

// Every call of the runtime holds one: ranks may be threads.
class Guard {
  public:
    Guard();

  private:
    std::lock_guard<std::recursive_mutex> lock_;
};

// What a call returns, remembered for cudaGetLastError.
cudaError_t returned(cudaError_t error);
// Whether the calling thread captures a stream. Asked by calls that are illegal then.
bool illegal_now();
// Runs all that is in a stream; in all streams.
void finish(cudaStream_t stream);
void finish_all();

}  // namespace stand_in
