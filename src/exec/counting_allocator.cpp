#include "exec/counting_allocator.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<bool> counting{false};
std::atomic<int64_t> allocations{0};

}  // namespace

// clang's thread sanitizer brings operators of its own that cannot be replaced: nothing is counted under it.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define CONVOY_KEEPS_ITS_OPERATORS
#endif
#endif

#ifndef CONVOY_KEEPS_ITS_OPERATORS
void* operator new(std::size_t bytes) {
    if (counting.load(std::memory_order_relaxed)) ++allocations;
    if (void* p = std::malloc(bytes ? bytes : 1)) return p;
    throw std::bad_alloc();
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
    if (counting.load(std::memory_order_relaxed)) ++allocations;
    return std::malloc(bytes ? bytes : 1);
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
#endif

namespace convoy {

void start_counting_allocations() {
    allocations = 0;
    counting = true;
}

int64_t stop_counting_allocations() {
    counting = false;
    return allocations;
}

}  // namespace convoy
