// Which GPU a rank uses, and whether NCCL can carry the traffic between the GPUs of a run. Plain values: nothing here touches a device.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/device.h"
#include "place/grid.h"

namespace convoy {

// What carries traffic between GPUs: NCCL, through host memory, or NCCL where it can.
enum class DeviceTransport : uint8_t { Auto, Nccl, Host };
std::string_view name_of(DeviceTransport transport);
// Error names the known ones.
DeviceTransport device_transport_named(std::string_view name);

// The GPU of a rank: those of a node take one after the other, from `first` on, and begin again when there are more ranks than GPUs. `nodes` has
// the node of every rank. Error when `first` is not one of `count`.
int device_of(Rank rank, const std::vector<int>& nodes, int first, int count);

// What a rank has to offer.
struct RankDevice {
    DeviceEndpoint device;
    int node = 0;
    bool nccl = false;        // whether its build has NCCL
    std::string nccl_detail;  // "NCCL 2.28.9", or why not
};

// Why NCCL cannot connect these ranks (one for each rank, in order), or nothing when it can be tried.
std::string why_not_nccl(const std::vector<RankDevice>& ranks);

// "GPU 0 (NVIDIA H200) for ranks 0, 2; GPU 1 (NVIDIA H200) for ranks 1, 3", by node where there are several.
std::string devices_text(const std::vector<RankDevice>& ranks);

}  // namespace convoy
