// A GPU as one rank sees it: a plain value that backends tell and transports read, so that neither knows the other.
#pragma once

#include <string>

namespace convoy {

struct DeviceEndpoint {
    int number = 0;          // among those that this process sees
    std::string identity;    // the same GPU has the same wherever it is seen
    std::string name;        // "NVIDIA H200"
    void* stream = nullptr;  // where its kernels run, in order; the backend's own, of the vendor's type
    bool operator==(const DeviceEndpoint&) const = default;
};

}  // namespace convoy
