// Batches on their way to the device while a step runs: by a stream of copies of its own, into memory apart from the operand's.
#pragma once

#include <memory>

#include "kernels/cuda/memory.h"

namespace convoy::cuda {

// A stream for copies that run beside kernels.
class CopyStream {
  public:
    explicit CopyStream(Device& device);
    ~CopyStream();
    CopyStream(const CopyStream&) = delete;
    CopyStream& operator=(const CopyStream&) = delete;

    cudaStream_t get() const { return stream_; }

  private:
    Device& device_;
    cudaStream_t stream_ = nullptr;
};

std::unique_ptr<Intake> make_intake(Device& device, CopyStream& copies, const Operand& operand);

// Nothing when the memory is too small to be worth it, shares pages with other memory, or the system refuses.
std::unique_ptr<PageLock> lock_pages(Device& device, std::span<std::byte> memory);

}  // namespace convoy::cuda
