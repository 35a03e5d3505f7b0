// For tests: counts what the whole process allocates with new while it is switched on.
#pragma once

#include <cstdint>

namespace convoy {

void start_counting_allocations();
// Stops counting; the number of allocations since the start.
int64_t stop_counting_allocations();

}  // namespace convoy
