// Stands for the cpu backend (for processors by oneDNN) in a build that does not have it.
#include "base/error.h"
#include "kernels/registry.h"

namespace convoy {

namespace {

constexpr const char* kWhy = "not in this build (it needs oneDNN)";

}  // namespace

BackendEntry cpu_entry() {
    return {"cpu",
            [] {
                return BackendStatus{"cpu", false, kWhy};
            },
            [](const BackendOptions&) -> std::unique_ptr<Backend> { fail("the cpu backend is {}", kWhy); }};
}

}  // namespace convoy
