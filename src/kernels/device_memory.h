// What a backend with memory of its own says of it; others have no such side.
#pragma once

#include <cstdint>

namespace convoy {

// Bytes.
struct DeviceMemoryUse {
    int64_t allocated_most;  // by this backend, at most at any one time so far
    int64_t in_use;          // now, by anyone: programs, libraries and the driver's own included
    int64_t total;
    int64_t libraries = 0;  // that libraries may take yet, when they are first used
};

// A backend may be one of these too.
class HasDeviceMemory {
  public:
    virtual ~HasDeviceMemory() = default;
    virtual DeviceMemoryUse memory_use() const = 0;
};

}  // namespace convoy
