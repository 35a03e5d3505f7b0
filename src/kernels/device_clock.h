// A backend whose kernels run beside the host can time them by the device's own clock; others have no such side.
#pragma once

#include <span>
#include <vector>

#include "kernels/backend.h"

namespace convoy {

// A backend may be one of these too.
class HasDeviceClock {
  public:
    virtual ~HasDeviceClock() = default;
    // Runs the kernels in order; the seconds that the device took for each, without the host's time to start them.
    virtual std::vector<double> time_each(std::span<Kernel* const> kernels, const StepContext& context) = 0;
};

}  // namespace convoy
