// Stands for NCCL, which carries traffic between GPUs, in a build that does not have it.
#include "base/error.h"
#include "comm/device_traffic.h"

namespace convoy {

namespace {

constexpr const char* kWhy = "not in this build (it needs CUDA and NCCL)";

}  // namespace

DeviceTrafficStatus nccl_status() { return {false, kWhy}; }

std::unique_ptr<DeviceTraffic> make_nccl_traffic(const DeviceEndpoint&, const HostLanes&) { fail("NCCL is {}", kWhy); }

}  // namespace convoy
