#include "comm/thread/event.h"

namespace convoy {

void Event::notify() {
    if (sleepers_.load() == 0) return;
    const std::lock_guard lock(mutex_);
    wake_.notify_all();
}

}  // namespace convoy
