#include "comm/thread/event.h"

#include <thread>

namespace convoy {

std::chrono::microseconds Event::spin_for(int threads) {
    return std::chrono::microseconds(threads <= static_cast<int>(std::thread::hardware_concurrency()) ? 50 : 0);
}

void Event::notify() {
    if (sleepers_.load() == 0) return;
    const std::lock_guard lock(mutex_);
    wake_.notify_all();
}

}  // namespace convoy
