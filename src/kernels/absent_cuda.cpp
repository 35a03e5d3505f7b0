// Stands for the cuda backend (for NVIDIA's GPUs) in a build that does not have it.
#include "base/error.h"
#include "kernels/registry.h"

namespace convoy {

namespace {

constexpr const char* kWhy = "not in this build (it needs CUDA)";

}  // namespace

BackendEntry cuda_entry() {
    return {"cuda",
            [] {
                return BackendStatus{"cuda", false, kWhy};
            },
            [](const BackendOptions&) -> std::unique_ptr<Backend> { fail("the cuda backend is {}", kWhy); }};
}

}  // namespace convoy
