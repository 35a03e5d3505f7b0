// Counting on the device, for the host to see.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

namespace convoy {

// Counts *counter, in the device's memory, up by one, in the order of the stream, and writes it to `seen`, which the host reads.
void start_mark(uint64_t* counter, volatile uint64_t* seen, cudaStream_t stream);

}  // namespace convoy
