// Memory that is taken piece by piece, each at a multiple of what libraries want.
#pragma once

#include <cstddef>
#include <cstdint>

namespace convoy::cuda {

class Scratch {
  public:
    static constexpr int64_t kAlignment = 256;  // libraries may count on more than the plan gives
    static constexpr int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

    Scratch(void* data, int64_t bytes) {
        const auto at = reinterpret_cast<intptr_t>(data);
        data_ = static_cast<std::byte*>(data) + (aligned(at) - at);
        left_ = bytes - kAlignment;  // the same wherever the plan puts it
    }
    // Nothing when there is not enough.
    void* take(int64_t bytes) {
        if (aligned(bytes) > left_) return nullptr;
        void* const piece = data_;
        data_ += aligned(bytes);
        left_ -= aligned(bytes);
        return piece;
    }
    void* rest() const { return data_; }
    int64_t left() const { return left_; }

  private:
    std::byte* data_;
    int64_t left_;
};

}  // namespace convoy::cuda
