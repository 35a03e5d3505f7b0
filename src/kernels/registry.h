// What a backend tells the registry of itself. Internal to this module: each backend, or the file that stands for its absence, defines one.
#pragma once

#include "kernels/backend.h"

namespace convoy {

struct BackendEntry {
    std::string name;
    // Asks the driver, where there is one.
    BackendStatus (*status)();
    // Error, with the status's detail, when it is not ready.
    std::unique_ptr<Backend> (*make)(const BackendOptions& options);
};

BackendEntry reference_entry();
BackendEntry cpu_entry();
BackendEntry cuda_entry();

}  // namespace convoy
